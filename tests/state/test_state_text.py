"""What people see of state, slots, numbers and commands that run once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.git import commit_text
from tests.support.snapshots import check_snapshot
from tests.support.transcripts import play

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

SETTINGS = """
[slots.gpu]
capacity = 24

[slots.database]
names = ["test_a", "test_b"]

[slots.api]
capacity = 60
per = "1m"

[numbers.migration]
path = "migrations/{n}_*.sql"
width = 4
"""


@pytest.fixture
def settled(shell: Shell) -> Shell:
    """A shell in a repository whose settings have slots and numbers."""
    commit_text(shell.folder, "landlane.toml", SETTINGS)
    return shell


def test_state_reads_as_described(shell: Shell) -> None:
    text = play(
        shell,
        "state list",
        "state set release/phase plan --as ann",
        "state set release/phase freeze --expect 1 --as ann",
        "state get release/phase",
        "state get release/phase -q",
        "state get release/phase -v",
        "state set release/phase ship --expect 1 --as bob",
        "state set release/phase ship --as bob",
        "state set release/phase ship --expect 2 --as bob",
        "state set other 1 --expect 4 --as bob",
        "state append found '{\"a\": 1}' --as bob -q",
        "state list",
        "state list -q",
        "state history release/phase",
        "state get phase",
        "state get nothing/like/it",
        "state watch release/phase --timeout 100ms",
    )
    check_snapshot("state/snapshots/state.txt", text)


def test_slots_read_as_described(settled: Shell) -> None:
    text = play(
        settled,
        "slot",
        "slot take port --name web --as ann",
        "slot take database --as ann",
        "slot take gpu --amount 12 --as codex-d14",
        "slot take gpu --amount 8 --as claude-c19 -v",
        "slot take gpu --amount 8 --as ann",
        "slot take gpu --amount 8 --wait 100ms --as ann",
        "slot take api --amount 60 --as ann",
        "slot take api --as bob",
        "slot take gpus --as ann",
        "slot take gpu --amount 25 --as ann",
        "slot take database --name z --as ann",
        "slot list",
        "slot free gpu:1 --as ann",
        "slot free database:test_a --as bob",
        "slot free database:test_a --as ann",
    )
    check_snapshot("state/snapshots/slots.txt", text)


def test_numbers_read_as_described(settled: Shell) -> None:
    text = play(
        settled,
        "number lst --as ann",
        "number migration --for 'add users' --as ann",
        "number migraton --as ann",
        "number adr --as ann",
        "number adr --new --as ann",
        "number adr --as ann",
        "number list migration",
        "number list adr -q",
        "number 'A B' --as ann",
    )
    check_snapshot("state/snapshots/numbers.txt", text)


def test_a_mistyped_kind_starts_no_session_and_counts_nothing(settled: Shell) -> None:
    settled.run("number", "lst", "--as", "ann")

    assert settled.run_json("status")["sessions"] == []


def test_commands_that_run_once_read_as_described(shell: Shell) -> None:
    text = play(
        shell,
        "once deps --as ann -- echo installed",
        "once deps --as bob -- echo installed",
        "once deps --as bob -q -- echo installed",
        "once build --as ann -- sh -c 'exit 2'",
        "once build --as bob -- make",
    )
    check_snapshot("state/snapshots/once.txt", text)
