"""Bounded retries as a user types them: a stop, the question, what `next` says meanwhile, and the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance


def test_what_repeats_itself_stops_and_only_a_person_lets_it_go_on(shell: Shell) -> None:
    shell.ask("task", "add", "Parse dates", "--kind", "chore", "--max-attempts", "9")
    for where in ("dates.py:12", "dates.py:40"):
        shell.ask("next", "--as", "ann")
        failed = shell.ask("fail", "T1", "--why", f"{where}: no such format", "--as", "ann")["task"]
    assert failed["state"] == "waiting_for_person"

    shown = shell.ask("task", "show", "T1")
    assert [one["why"] for one in shown["feedback"]][:2] == [
        "dates.py:12: no such format",
        "dates.py:40: no such format",
    ]
    used = shown["retries"]
    assert (used["attempts"], used["max_attempts"], used["lineage"]) == (2, 10, "T1")
    assert "the same feedback came twice" in used["stopped"]
    shell.refuse("LINEAGE_STOPPED", "task", "add", "Another way", "--parent", "T1", exit=6)
    shell.refuse("NOT_A_PERSON", "task", "retry", "T1", "--as", "ann", exit=6)
    shell.refuse("NOT_A_PERSON", "task", "retry", "T1", exit=6)  # nobody sits at a terminal
    assert [gate["task"] for gate in shell.ask("gate", "list")["gates"]] == ["T1"]
    shell.ask("task", "drop", "T1", "--why", "no")
    assert shell.ask("gate", "list")["gates"] == []


def test_next_says_what_is_held_back_and_until_when(shell: Shell) -> None:
    shell.ask("task", "add", "Parse dates", "--kind", "chore", "--max-attempts", "9")
    (shell.folder / "landlane.toml").write_text('[retries]\nbackoff = "1h"\nbackoff_cap = "2h"\n')
    for why in ("one", "two"):
        shell.ask("next", "--as", "ann")
        shell.ask("fail", "T1", "--why", why, "--as", "ann")
    answer = shell.refuse("NO_TASK", "next", "--as", "ann", exit=5)
    assert [one["task"] for one in answer["held_back"]] == ["T1"]
    assert "held back until" in answer["message"]
    assert shell.ask("task", "show", "T1")["retries"]["not_before"] == answer["held_back"][0]["until"]
    assert shell.ask("task", "retry", "T1")["task"]["state"] == "ready"
    assert shell.ask("next", "--as", "ann")["task"]["id"] == "T1"


def test_the_pool_is_paused_with_a_reason_and_resumed(shell: Shell) -> None:
    assert shell.ask("pool", "show")["pool"]["state"] == "open"
    shell.refuse("NO_REASON", "pool", "pause", exit=2)
    shell.refuse("BAD_CALL", "pool", "stop", exit=2)
    paused = shell.ask("pool", "pause", "--why", "the disk is full")["pool"]
    assert (paused["state"], paused["paused"]) == ("paused", "the disk is full")
    assert "the disk is full" in shell.tell("status")
    assert shell.ask("pool", "resume")["pool"] == {
        "state": "open",
        "paused": None,
        "paused_at": None,
        "paused_by": None,
        "failures": [],
        "admission": {},
    }
