"""`inbox ID` for every kind of item: the card, the answer, and the minutes that a person spent on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import run_at_terminal

if TYPE_CHECKING:
    from tests.support.shell import Answer, Shell

pytestmark = pytest.mark.acceptance


def decisions(shell: Shell) -> list[Answer]:
    entries = shell.run_json("log")["entries"]
    return [entry["data"] for entry in entries if entry["kind"] == "decision.made"]


def ids(shell: Shell) -> list[str]:
    return [item["id"] for item in shell.with_env(USER="pat").run_json("inbox")["items"]]


def ask_gate(shell: Shell) -> None:
    shell.run_json("task", "add", "List users", "--as", "lead")
    shell.run_json("next", "--as", "ann")
    shell.run_json("gate", "ask", "T1", "--why", "drop the table?", "--as", "ann", exit=7)


def test_a_question_is_answered_and_the_time_is_counted(shell: Shell) -> None:
    ask_gate(shell)

    code, said = run_at_terminal(shell, "inbox", "g1", typed="a\n", NO_COLOR="1")

    assert (code, ids(shell)) == (0, [])
    assert "✓ approved G1; ann continues T1 List users" in said
    (made,) = decisions(shell)
    assert made["item"] == "G1"
    assert 0 <= made["spent_ms"] < 60_000


def test_an_answer_without_a_showing_takes_an_unknown_time(shell: Shell) -> None:
    ask_gate(shell)
    run_at_terminal(shell, "gate", "approve", "G1")

    assert decisions(shell) == [{"item": "G1", "spent_ms": None}]


def test_an_item_that_was_shown_long_ago_counts_15_minutes(shell: Shell) -> None:
    ask_gate(shell)
    run_at_terminal(shell, "inbox", "G1", typed="l\n")
    shell.pass_time(3_600)
    run_at_terminal(shell, "gate", "approve", "G1")

    assert decisions(shell) == [{"item": "G1", "spent_ms": 15 * 60_000}]


def test_a_handoff_to_a_person_is_in_the_inbox_and_is_declined_there(shell: Shell) -> None:
    shell.run_json("task", "add", "List users", "--as", "lead")
    shell.run_json("next", "--as", "ann")
    shell.run_json("handoff", "T1", "--to", "pat", "--next", "write the test", "--as", "ann")
    (item,) = shell.with_env(USER="pat").run_json("inbox")["items"]
    assert item["what"] == "take over T1 List users from ann: write the test"

    _, said = run_at_terminal(shell, "inbox", "H1", typed="d\nno time\n", NO_COLOR="1")

    assert "Accept, decline or later? [a/d/L]" in said
    assert "✓ declined H1" in said
    assert ids(shell) == []
    assert [made["item"] for made in decisions(shell)] == ["H1"]


def test_a_task_that_failed_for_good_is_retried_or_dropped(shell: Shell) -> None:
    shell.run_json("config", "set", "retries.last", "fail")
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Fail after the last attempt")
    for title in ("List users", "Sort orders"):
        shell.run_json("task", "add", title, "--max-attempts", "1", "--as", "lead")
    for task in ("T1", "T2"):
        shell.run_json("next", "--as", "ann")
        shell.run_json("fail", task, "--why", f"no such endpoint for {task}", "--as", "ann")
    assert {task["state"] for task in shell.run_json("task", "list", "--all")["tasks"]} == {"dead"}
    assert sorted(ids(shell)) == ["T1", "T2"]
    assert "Earlier attempts" in shell.run_text("inbox", "T1")

    _, said = run_at_terminal(shell, "inbox", "T1", typed="r\n", NO_COLOR="1")
    assert "T1 Retry List users?" in said
    assert "Retry, drop or later? [r/d/L]" in said
    run_at_terminal(shell, "inbox", "T2", typed="d\nnot needed\n")

    assert ids(shell) == []
    states = {task["id"]: task["state"] for task in shell.run_json("task", "list", "--all")["tasks"]}
    assert states == {"T1": "ready", "T2": "dropped"}
    assert [made["item"] for made in decisions(shell)] == ["T1", "T2"]
    shell.run_error("NOT_WAITING", "inbox", "T1")


def test_what_a_person_rejected_does_not_come_back_as_a_failure(shell: Shell) -> None:
    shell.run_json("task", "add", "List users", "--max-attempts", "1", "--as", "lead")
    shell.run_json("next", "--as", "ann")
    shell.run_json("gate", "ask", "T1", "--why", "drop the table?", "--as", "ann", exit=7)
    run_at_terminal(shell, "gate", "reject", "G1", "--why", "no")
    shell.run("fail", "T1", "--why", "rejected", "--as", "ann")

    assert ids(shell) == []


def test_paused_workers_are_shown_and_resumed(shell: Shell) -> None:
    assert shell.run_text("inbox", "workers") == "The workers are not paused.\n"
    shell.run_json("run", "pause", "--why", "the disk is full", "--as", "lead")
    assert "the disk is full" in shell.run_text("inbox")

    run_at_terminal(shell, "inbox", "workers", typed="r\n")

    assert shell.run_json("status")["headline"]["workers_paused"] is False


def test_the_target_is_shown_by_its_name(shell: Shell) -> None:
    assert "main" in shell.run_text("inbox", "main")


def test_a_review_is_answered_in_the_inbox(shell: Shell) -> None:
    shell.run_json("task", "add", "List users", "--path", "a.py", "--reviewer", "person", "--as", "lead")
    shell.run_json("next", "--as", "ann")
    shell.git("switch", "--quiet", "-c", "landlane/T1-1/work")
    (shell.folder / "a.py").write_text("users = 1\n", encoding="utf-8")
    shell.git("add", "a.py")
    shell.run_json("commit", "-m", "List users", "a.py", "--as", "ann")
    shell.run_json("done", "T1", "--as", "ann")
    assert ids(shell) == ["V1"]

    _, said = run_at_terminal(shell, "inbox", "v1", typed="d\nr\nno tests\n", NO_COLOR="1")

    assert "+users = 1" in said
    assert "✓ rejected T1 List users" in said
    assert ids(shell) == []
    assert [made["item"] for made in decisions(shell)] == ["V1"]


def fail_twice(shell: Shell) -> None:
    """Let a task fail twice the same way, so that a person is asked whether it is tried again."""
    shell.run_json("task", "add", "Rename routes", "--as", "lead")
    for agent in ("ann", "bob"):
        shell.run_json("next", "--as", agent)
        shell.run_json("fail", "T1", "--why", "the router rejects the new names", "--as", agent)
    assert ids(shell) == ["G1"]


def test_a_retry_is_asked_for_in_its_own_words_and_takes_advice(shell: Shell) -> None:
    fail_twice(shell)
    shown = shell.run_text("gate", "show", "G1")
    assert shown.splitlines()[-2:] == [
        "retry: landlane gate approve G1 --why 'what to do differently'",
        "stop:  landlane gate reject G1 --why 'reason'",
    ]

    _, said = run_at_terminal(shell, "inbox", "G1", typed="r\nkeep aliases\n", NO_COLOR="1")

    assert "G1 Retry T1 Rename routes?" in said
    assert "Retry, stop or later? [r/s/L]" in said
    assert "T1 Rename routes is ready again with your answer and a new budget of 3 attempts" in said
    assert "keep aliases" in shell.run_text("task", "show", "T1")


def test_a_task_that_a_person_gave_up_waits_for_nothing_anywhere(shell: Shell) -> None:
    fail_twice(shell)

    _, said = run_at_terminal(shell, "inbox", "G1", typed="s\nnot worth it\n", NO_COLOR="1")

    assert "rejected G1; T1 Rename routes is not tried again" in said
    assert ids(shell) == []
    assert "nothing needs you" in shell.run_text("status")
    (task,) = shell.run_json("task", "list", "--all")["tasks"]
    assert (task["state"], task["waits_for"]) == ("dead", [])
    shown = shell.run_text("task", "show", "T1")
    assert "waits for" not in shown
    assert "not worth it" in shown


def test_a_task_that_fails_again_after_it_was_given_up_and_retried_needs_a_person(shell: Shell) -> None:
    fail_twice(shell)
    run_at_terminal(shell, "inbox", "G1", typed="s\nnot worth it\n")
    run_at_terminal(shell, "task", "retry", "T1")
    shell.run_json("next", "--as", "ann")
    shell.run_json("fail", "T1", "--why", "there are no routes", "--final", "--as", "ann")

    assert ids(shell) == ["T1"]
    (task,) = shell.run_json("task", "list", "--all")["tasks"]
    assert [wait["kind"] for wait in task["waits_for"]] == ["decision"]


def test_a_question_without_a_change_offers_no_diff(shell: Shell) -> None:
    ask_gate(shell)

    _, said = run_at_terminal(shell, "inbox", "G1", typed="l\n", NO_COLOR="1")

    assert "Approve, reject or later? [a/r/L]" in said
