"""Bounded retries as a user types them: a stop, the question, what `next` says meanwhile, and the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.git import commit_text

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance


def test_a_repeating_task_stops_until_a_person_retries_it(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse dates", "--kind", "chore", "--max-attempts", "9")
    for where in ("dates.py:12", "dates.py:40"):
        shell.run_json("next", "--as", "ann")
        failed = shell.run_json("fail", "T1", "--why", f"{where}: no such format", "--as", "ann")["task"]
    assert failed["state"] == "waiting_for_person"

    shown = shell.run_json("task", "show", "T1")
    assert [one["why"] for one in shown["feedback"]][:2] == [
        "dates.py:12: no such format",
        "dates.py:40: no such format",
    ]
    used = shown["retries"]
    assert (used["attempts"], used["max_attempts"], used["lineage"]) == (2, 10, "T1")
    assert "it failed twice the same way" in used["stopped"]
    shell.run_error("LINEAGE_STOPPED", "task", "add", "Another way", "--parent", "T1", exit=6)
    shell.run_error("NOT_A_PERSON", "task", "retry", "T1", "--as", "ann", exit=6)
    shell.run_error("NOT_A_PERSON", "task", "retry", "T1", exit=6)  # nobody sits at a terminal
    (gate,) = shell.run_json("gate", "list")["gates"]
    assert (gate["task"], gate["why"]) == ("T1", "T1 failed twice the same way: retry?")
    assert "G1  T1 Parse dates failed twice the same way: retry?" in shell.run_text("inbox")
    assert "G1  T1 failed twice the same way: retry?" in shell.run_text("gate", "list")
    card = shell.run_text("gate", "show", "G1").splitlines()
    assert card[0].startswith("G1 Retry T1 Parse dates?")
    assert card[1:4] == ["  why       T1 failed twice the same way: retry?", "", "Earlier attempts"]
    shell.run_json("task", "drop", "T1", "--why", "no")
    assert shell.run_json("gate", "list")["gates"] == []


def test_the_card_shows_the_failing_lines_of_each_attempt(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse dates", "--kind", "chore", "--max-attempts", "9")
    output = (
        "L1 bounced: make test fails\n" + "\n".join(f"line {n}" for n in range(30)) + "\nKeyError: 'day'\n"
    )
    for _ in range(2):
        shell.run_json("next", "--as", "ann")
        shell.run_json("fail", "T1", "--why", output, "--as", "ann")

    card = shell.run_text("gate", "show", "G1").splitlines()

    assert card[card.index("Earlier attempts") + 1 : -2] == [
        "  attempt 1, ann: L1 bounced: make test fails",
        "    KeyError: 'day'",
        "  attempt 2, ann: L1 bounced: make test fails",
        "    KeyError: 'day'",
    ]


def test_next_reports_tasks_that_back_off_and_until_when(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse dates", "--kind", "chore", "--max-attempts", "9")
    commit_text(shell.folder, "landlane.toml", '[retries]\nbackoff = "1h"\nbackoff_cap = "2h"\n')
    for why in ("one", "two"):
        shell.run_json("next", "--as", "ann")
        shell.run_json("fail", "T1", "--why", why, "--as", "ann")
    answer = shell.run_error("NO_TASK", "next", "--as", "ann", exit=5)
    assert [one["task"] for one in answer["held_back"]] == ["T1"]
    assert "1 ready task failed and is tried again later" in answer["message"]
    assert shell.run_json("task", "show", "T1")["retries"]["not_before"] == answer["held_back"][0]["until"]
    assert shell.run_json("task", "retry", "T1")["task"]["state"] == "ready"
    assert shell.run_json("next", "--as", "ann")["task"]["id"] == "T1"


def test_the_pool_is_paused_with_a_reason_and_resumed(shell: Shell) -> None:
    assert shell.run_json("status")["pool"]["state"] == "open"
    shell.run_error("NO_REASON", "run", "pause", exit=2)
    shell.run_error("BAD_CALL", "run", "pause", "now", exit=2)
    paused = shell.run_json("run", "pause", "--why", "the disk is full")["pool"]
    assert (paused["state"], paused["paused"]) == ("paused", "the disk is full")
    assert "the disk is full" in shell.run_text("status")
    assert shell.run_json("run", "resume")["pool"] == {
        "state": "open",
        "paused": None,
        "paused_at": None,
        "paused_by": None,
        "pauses_landing": False,
        "failures": [],
        "admission": {},
    }
