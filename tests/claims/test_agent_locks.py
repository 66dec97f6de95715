"""Lock files as others make them: `FILE.agent-lock` in the tree is honoured as a claim of somebody."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.claims import agent_locks
from landlane.patterns.pattern import parse
from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


@pytest.fixture
def shell(repository: Path) -> Shell:
    (repository / "src").mkdir()
    for name in ("a.py", "b.py"):
        (repository / "src" / name).write_text("x = 1\n")
    lock = repository / "src" / "a.py.agent-lock"
    lock.write_text("agent-7\n")
    hour_ago = time.time() - 3600
    os.utime(lock, (hour_ago, hour_ago))
    return Shell(repository, {"LANDLANE_AGENT": "ann"})


@pytest.mark.promise("claims.lock-files-count", "FILE.agent-lock in the tree counts as a claim of somebody.")
@pytest.mark.parametrize("wanted", ["src/a.py", "src", "src/*.py", "**"])
def test_a_lock_file_is_a_claim_of_somebody_with_its_age(shell: Shell, wanted: str) -> None:
    refused = shell.run_error("CLAIM_HELD", "claim", wanted, exit=3)

    assert refused["holders"][0]["holder"] == "somebody"
    assert "src/a.py.agent-lock" in refused["message"]
    assert "(1 h ago)" in refused["message"]
    assert "landlane config set claims.agent_locks false" in refused["refused"][0]["hint"]
    shell.run_error("CLAIM_HELD", "check", "src/a.py", exit=3)
    shell.run_json("claim", "src/b.py")
    (shell.folder / "src" / "a.py.agent-lock").unlink()
    shell.run_json("claim", wanted)


def test_what_is_held_already_and_the_rest_of_a_partial_request_are_granted(shell: Shell) -> None:
    shell.run_json("claim", "src/b.py")
    (shell.folder / "src" / "b.py.agent-lock").write_text("")
    shell.run_json("claim", "src/b.py")  # its own lock file, or one that came too late

    answer = shell.run_json("claim", "src/a.py", "docs/c.md", "--partial")

    assert [one["pattern"] for one in answer["granted"]] == ["docs/c.md"]


def test_waiting_ends_when_the_lock_file_is_removed(shell: Shell) -> None:
    shell.run_error("WAIT_TIMED_OUT", "claim", "src/a.py", "--wait", "1s", exit=5)
    with shell.start("claim", "src/a.py", "--wait", "60s") as waiting:
        (shell.folder / "src" / "a.py.agent-lock").unlink()
        assert waiting.end().exit == 0


def test_a_task_whose_path_is_locked_waits(shell: Shell) -> None:
    task = shell.run_json("task", "add", "Change a", "--path", "src/a.py")["task"]["id"]

    shell.run_error("NO_TASK", "next", exit=5)

    (listed,) = shell.run_json("task", "list")["tasks"]
    assert (listed["id"], listed["waits_for"][0]["holder"]) == (task, "somebody")


def test_a_setting_ignores_lock_files(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text("[claims]\nagent_locks = false\n")
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Ignore lock files")

    shell.run_json("claim", "src/a.py")


def test_a_name_that_is_no_path_searches_no_folder(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    monkeypatch.setattr(agent_locks.os, "walk", lambda folder: searched.append(folder) or ())
    repo = open_repository(str(shell.folder))
    try:
        assert agent_locks.find_agent_locks(repo, (parse("deploy:prod"),)) == []
    finally:
        repo.close()
    assert searched == []
