"""What a newcomer sees first: help with examples for every command, and the version."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


def test_help_needs_no_repository(tmp_path: Path) -> None:
    shell = Shell(tmp_path)

    assert shell.tell("--help").startswith("Usage: landlane")
    assert "Examples:" in shell.tell("claim", "-h")
    assert shell.tell("--version").startswith("landlane ")
    assert shell.tell("store", "--help").startswith("Usage: landlane store")


def test_completion_answers_a_shell(tmp_path: Path) -> None:
    asking = Shell(tmp_path).where(
        _LANDLANE_COMPLETE="bash_complete", COMP_WORDS="landlane clai", COMP_CWORD="1"
    )

    assert "plain,claim" in asking.run().out


def test_it_runs_as_a_module_too(shell: Shell) -> None:
    ended = shell.run_program(sys.executable, "-m", "landlane", "claims", "--json")

    assert ended.answer()["claims"] == []


def test_json_is_one_object_wherever_the_word_stands(shell: Shell) -> None:
    for words in (["--json", "store", "info"], ["store", "--json", "info"], ["store", "info", "--json"]):
        ended = shell.run(*words)
        assert json.loads(ended.out)["ok"], ended
    assert shell.run("claim", "--json", "--as", "ann", "--", "--odd-name").answer()["granted"]
    assert shell.holders() == {"--odd-name": "ann"}
