"""Handoffs as a user types them: every command, its JSON, its exit codes; bad input changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.git import commit_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

FIELDS = {
    *("id", "task", "state", "from", "to", "attempt", "maximum", "product", "context", "constraints"),
    *("next", "blockers", "assumptions", "fields", "taken", "hash", "intact", "sent", "until"),
    *("declined_by", "accepted_by", "accepted", "why"),
}


def begin(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse dates", "--path", "src/**")
    shell.run_json("next", "--as", "ann")


def test_a_handoff_from_its_sender_to_its_end(shell: Shell, repository: Path) -> None:
    """One story: sent with files, shown, refused to others, accepted against its hash, declined, gone on."""
    (repository / "product.md").write_text("the parser, half of it\n")
    begin(shell)
    words = ["--product", "product.md", "--context", "-", "--constraint", "keep the API", "--constraint", "b"]
    words += ["--next", "write the test", "--blocker", "CI is red", "--assumption", "UTC", "--as", "ann"]
    text = "RFC 3339\nhas two forms\n"
    sent = shell.run("handoff", "T1", "--to", "bob", *words, "--json", stdin=text).json()
    handoff = sent["handoff"]
    assert set(sent) == {"ok", "handoff", "task"}
    assert set(handoff) == FIELDS
    assert (handoff["product"], handoff["context"]) == ("the parser, half of it", "RFC 3339\nhas two forms")
    assert (handoff["constraints"], handoff["next"]) == (["keep the API", "b"], "write the test")
    assert (handoff["attempt"], handoff["maximum"], handoff["state"]) == (1, 5, "sent")
    assert (sent["task"]["state"], sent["task"]["owner"]) == ("ready", None)
    assert shell.holders() == {"src/**": "H1"}

    for name in ("T1", "H1"):
        assert shell.run_json("handoff", "show", name)["handoff"] == handoff
    told = shell.run_text("handoff", "show", "T1")
    assert told.startswith("H1 T1 Parse dates ")
    assert "\n  context    RFC 3339\n             has two forms\n" in told
    assert [one["id"] for one in shell.run_json("handoff", "list")["handoffs"]] == ["H1"]

    other = shell.run_json("handoff", "accept", "T1", "--as", "eve", exit=3)
    assert (other["code"], other["holder"]) == ("HANDOFF_NOT_YOURS", "bob")
    assert other["until"] == handoff["until"]
    assert shell.run_json("next", "--as", "eve", exit=5)["code"] == "NO_TASK"
    assert (
        shell.run_json("handoff", "accept", "T1", "--hash", "f" * 64, "--as", "bob", exit=4)["code"]
        == "HANDOFF_CHANGED"
    )

    taken = shell.run_json("handoff", "accept", "T1", "--hash", handoff["hash"], "--as", "bob")
    assert set(taken) == {"ok", "task", "claims", "handoff", "context"}
    assert (taken["task"]["owner"], taken["handoff"]["accepted_by"]) == ("bob", "bob")
    assert "keep the API" in taken["context"]
    assert shell.holders() == {"src/**": "bob"}
    assert shell.run_json("handoff", "list")["handoffs"] == []
    assert len(shell.run_json("handoff", "list", "--all")["handoffs"]) == 1
    resumed = shell.run_json("next", "--resume", "--as", "bob")
    assert (resumed["handoff"]["id"], resumed["context"]) == ("H1", taken["context"])

    shell.run_json("handoff", "T1", "--to", "ann", "--next", "your turn", "--as", "bob")
    declined = shell.run_json("handoff", "decline", "T1", "--why", "no time", "--as", "ann")["handoff"]
    assert (declined["declined_by"], declined["why"]) == (["ann"], "ann declined H2: no time")
    assert shell.run_json("next", "--as", "ann", exit=5)["code"] == "NO_TASK"
    assert shell.run_json("next", "--as", "eve")["handoff"]["id"] == "H2"


def test_over_the_maximum_it_ends_with_a_person(shell: Shell, repository: Path) -> None:
    commit_text(repository, "landlane.toml", '[handoffs]\nmax = 1\n[handoffs.fields]\nrisk = "text"\n')
    begin(shell)
    shell.run_json("handoff", "T1", "--to", "bob", "--next", "go", "--field", "risk=low", "--as", "ann")
    shell.run_json("handoff", "accept", "T1", "--as", "bob")
    over = shell.run_json("handoff", "T1", "--to", "ann", "--next", "go on", "--as", "bob", exit=7)
    assert (over["code"], over["handoff"], over["maximum"]) == ("HANDOFF_LIMIT", "H2", 1)
    assert shell.run_json("task", "show", "T1")["task"]["state"] == "waiting_for_person"
    assert shell.run_json("handoff", "show", "T1")["handoff"]["next"] == "go on"
    assert [one["task"] for one in shell.run_json("gate", "list")["gates"]] == ["T1"]


MISUSES: list[tuple[list[str], int, str]] = [
    (["handoff", "T1", "--next", "n"], 2, "NO_RECEIVER"),
    (["handoff", "T1", "--to", "bob"], 2, "HANDOFF_INCOMPLETE"),
    (["handoff", "T1", "--to", "b o b", "--next", "n"], 2, "BAD_NAME"),
    (["handoff", "T9", "--to", "bob", "--next", "n"], 2, "UNKNOWN_TASK"),
    (["handoff", "T1", "--to", "bob", "--product", "nowhere.md"], 2, "UNREADABLE_FILE"),
    (["handoff", "T1", "--to", "bob", "--product", "-", "--context", "-"], 2, "BAD_CALL"),
    (["handoff", "T1", "--to", "bob", "--next", "n", "--field", "x=1"], 2, "HANDOFF_UNKNOWN_FIELD"),
    (["handoff", "T1", "--to", "bob", "--next", "n", "--field", "x"], 2, "BAD_FIELD"),
    (["handoff", "T1", "--to", "bob", "--next", "n", "--max", "9"], 2, "OUT_OF_RANGE"),
    (["handoff", "T1", "--to", "bob", "--next", "x" * 4001], 2, "TEXT_TOO_LONG"),
    (["handoff", "T1", "--to", "eve", "--next", "n", "--as", "bob"], 4, "TASK_NOT_YOURS"),
    (["handoff", "show", "T1"], 2, "NO_HANDOFF"),
    (["handoff", "show", "H9"], 2, "UNKNOWN_TASK"),
    (["handoff", "show"], 2, "BAD_CALL"),
    (["handoff", "accept", "T1"], 2, "NO_HANDOFF"),
    (["handoff", "accept", "T9"], 2, "UNKNOWN_TASK"),
    (["handoff", "decline", "T1", "--why", "x"], 2, "NO_HANDOFF"),
    (["handoff", "decline", "T1"], 2, "NO_REASON"),
]


def test_what_makes_no_sense_is_refused_and_changes_nothing(shell: Shell) -> None:
    begin(shell)
    shell.run_json("join", "bob")
    before = shell.position()
    for words, exit, code in MISUSES:
        as_ann = [] if "--as" in words else ["--as", "ann"]
        shell.run_error(code, *words, *as_ann, exit=exit)
    assert shell.position() == before
