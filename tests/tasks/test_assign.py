"""Tasks that are for one agent or a person before work starts, and questions before any agent takes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import run_at_terminal

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance


@pytest.mark.promise(
    "tasks.assigned", "A task that is assigned before work starts is offered to that agent or person only."
)
def test_an_assigned_task_is_offered_to_its_agent_only_and_first(shell: Shell) -> None:
    shell.run_json("task", "add", "Urgent", "--priority", "9")
    task = shell.run_json("task", "add", "For bob", "--assign", "bob")["task"]
    assert task["assigned_to"] == "bob"

    assert shell.run_json("next", "--as", "bob")["task"]["id"] == "T2"
    assert shell.run_json("next", "--as", "ann")["task"]["id"] == "T1"
    shell.run_json("task", "add", "For eve", "--assign", "eve")
    shell.run_error("NO_TASK", "next", "--as", "ann", exit=5)


def test_an_edit_gives_a_task_to_another_agent_or_to_all(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse", "--assign", "bob")

    edited = shell.run_json("task", "edit", "T1", "--assign", "ann", "--next", "read the RFC")["task"]
    assert (edited["assigned_to"], edited["next_action"]) == ("ann", "read the RFC")
    shell.run_error("NO_TASK", "next", "--as", "bob", exit=5)
    assert shell.run_json("task", "edit", "T1", "--assign", "anybody")["task"]["assigned_to"] is None

    assert shell.run_json("next", "--as", "bob")["task"]["id"] == "T1"


def test_an_edit_survives_a_rebuild_of_the_store(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse")
    shell.run_json("task", "edit", "T1", "--assign", "ann", "--next", "read the RFC")

    shell.run_json("store", "rebuild")

    task = shell.run_json("task", "show", "T1")["task"]
    assert (task["assigned_to"], task["next_action"]) == ("ann", "read the RFC")


def test_a_task_for_a_person_is_never_given_to_an_agent(shell: Shell) -> None:
    shell.run_json("task", "add", "Sign the contract", "--assign", "person:pat")

    shell.run_error("NO_TASK", "next", "--as", "pat", exit=5)


def test_only_a_person_gives_a_task_for_a_person_to_somebody_else(shell: Shell) -> None:
    shell.run_json("task", "add", "Sign the contract", "--assign", "person:pat")

    shell.run_error("NOT_A_PERSON", "task", "edit", "T1", "--assign", "bob", "--as", "bob", exit=6)
    shell.run_json("task", "edit", "T1", "--priority", "3", "--as", "bob")

    code, said = run_at_terminal(shell, "task", "edit", "T1", "--assign", "bob", typed="")
    assert code == 0, said
    assert shell.run_json("next", "--as", "bob")["task"]["id"] == "T1"


def test_an_assigned_task_of_another_role_is_not_offered(shell: Shell) -> None:
    shell.run_json("task", "add", "Test it", "--role", "test", "--assign", "bob")

    shell.run_error("NO_TASK", "next", "--as", "bob", "--role", "code", exit=5)


def test_a_question_is_answered_before_any_agent_takes_the_task(shell: Shell) -> None:
    shell.run_json("task", "add", "Drop the table", "--gate", "Is the backup done?")
    assert shell.run_json("task", "show", "T1")["task"]["state"] == "waiting_for_person"
    shell.run_error("NO_TASK", "next", "--as", "ann", exit=5)
    assert "Is the backup done?" in shell.run_text("inbox")

    run_at_terminal(shell, "gate", "approve", "G1")

    assert shell.run_json("next", "--as", "ann")["task"]["id"] == "T1"


def test_a_task_in_the_queue_can_be_asked_about_as_well(shell: Shell) -> None:
    shell.run_json("task", "add", "Drop the table")

    shell.run_json("gate", "ask", "T1", "--why", "Is the backup done?", "--as", "lead", exit=7)

    shell.run_error("NO_TASK", "next", "--as", "ann", exit=5)


@pytest.mark.promise(
    "handoffs.to-a-person", "A task that is handed to a person waits in the inbox and goes to no agent."
)
def test_a_handoff_to_a_person_waits_in_the_inbox_and_goes_to_no_agent(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse")
    shell.run_json("next", "--as", "ann")
    shell.run_json("handoff", "T1", "--to", "person:pat", "--next", "choose the format", "--as", "ann")

    task = shell.run_json("task", "show", "T1")["task"]
    assert task["next_action"] == "choose the format"
    assert task["waits_for"][0]["needs_person"]
    shell.pass_time(3 * 3600)
    shell.run_error("NO_TASK", "next", "--as", "bob", exit=5)
    shell.run_error("HANDOFF_NOT_YOURS", "handoff", "accept", "T1", "--as", "pat", exit=3)
    (item,) = shell.run_json("inbox")["items"]
    assert (item["kind"], item["task"]) == ("handoff", "T1")


def test_after_the_last_attempt_a_person_is_asked_with_the_whole_history(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse", "--max-attempts", "2")
    for why in ("no such endpoint", "wrong format"):
        shell.run_json("next", "--as", "ann")
        task = shell.run_json("fail", "T1", "--why", why, "--as", "ann")["task"]
    assert task["state"] == "waiting_for_person"
    card = shell.run_text("inbox", "G1")
    assert "no such endpoint" in card
    assert "wrong format" in card

    run_at_terminal(shell, "gate", "reject", "G1", "--why", "give up")

    assert shell.run_json("task", "show", "T1")["task"]["state"] == "dead"


def test_without_an_answer_in_time_the_task_fails_for_good(shell: Shell) -> None:
    shell.run_json("config", "set", "retries.answer", "1ms")
    shell.run_json("task", "add", "Parse", "--max-attempts", "1")
    shell.run_json("next", "--as", "ann")
    shell.run_json("fail", "T1", "--why", "no such endpoint", "--as", "ann")

    assert shell.run_json("task", "list", "--all")["tasks"][0]["state"] == "dead"
