"""What a newcomer sees first: help with examples for every command, and the version."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell
from tests.support.snapshots import check_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


def test_help_needs_no_repository(tmp_path: Path) -> None:
    shell = Shell(tmp_path)

    assert shell.run_text("--version").startswith("landlane ")
    assert shell.run_text("claim", "-h") == shell.run_text("help", "claim")
    assert shell.run_text("task", "add", "--help") == shell.run_text("help", "task", "add")
    assert shell.run_error("BAD_CALL", "help", "clam", exit=2)["hint"] == "landlane help claim"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("overview", ("--help",)),
        ("everything", ("help", "--all")),
        ("claim", ("help", "claim")),
        ("task", ("task", "--help")),
        ("handoff", ("help", "handoff")),
        ("task-add", ("help", "task", "add")),
    ],
)
def test_help_reads_as_agreed(tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    check_snapshot(f"cli/snapshots/help-{name}.txt", Shell(tmp_path).run_text(*words).rstrip("\n"))


def test_it_runs_as_a_module_too(shell: Shell) -> None:
    ended = shell.run_program(sys.executable, "-m", "landlane", "claims", "--json")

    assert ended.json()["claims"] == []


def test_json_may_stand_anywhere_and_gives_one_object(shell: Shell) -> None:
    for words in (["--json", "store", "info"], ["store", "--json", "info"], ["store", "info", "--json"]):
        ended = shell.run(*words)
        assert json.loads(ended.out)["ok"], ended
    assert shell.run("claim", "--json", "--as", "ann", "--", "--odd-name").json()["granted"]
    assert shell.holders() == {"--odd-name": "ann"}
