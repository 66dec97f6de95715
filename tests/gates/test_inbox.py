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
