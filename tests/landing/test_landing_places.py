"""Landing from odd places: the workspace that is closed by the landing, and a bare repository."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from landlane.testing.repositories import git
from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

SETTINGS = '[landing]\nremote = "none"\nresident = false\nchecks = ["true"]\n'


def commit_settings(root: Path) -> None:
    (root / "landlane.toml").write_text(SETTINGS, encoding="utf-8")
    git(root, "add", "landlane.toml")
    git(root, "commit", "--quiet", "-m", "Settings")


def run(shell: Shell, *words: str) -> str:
    done = shell.run(*words)
    assert done.exit == 0, done
    return done.out + done.err


def test_landing_inside_the_workspace_that_it_closes_ends_well(store: str, repository: Path) -> None:
    commit_settings(repository)
    home = Shell(repository)
    run(home, "task", "add", "Parse dates", "--path", "new.py", "--as", "lead")
    path = home.run("workspace", "open", "T1", "--as", "ann").out.split()[-1]
    inside = home.at(path)
    (inside.folder / "new.py").write_text("x\n", encoding="utf-8")
    run(inside, "commit", "-m", "New", "new.py", "--as", "ann")

    run(inside, "land", "--wait", "--as", "ann")

    assert git(repository, "show", "main:new.py") == "x\n"
    assert not os.path.exists(path)


def test_a_bare_repository_has_no_checkout_to_move(repository: Path) -> None:
    commit_settings(repository)
    bare, main, topic = (repository.parent / name for name in ("bare.git", "main", "topic"))
    git(repository.parent, "clone", "--quiet", "--bare", str(repository), str(bare))
    shutil.rmtree(repository)
    git(bare, "worktree", "add", "--quiet", str(main), "main")
    git(bare, "worktree", "add", "--quiet", "-b", "topic", str(topic))
    (topic / "README.md").write_text("changed\n", encoding="utf-8")
    git(topic, "commit", "--quiet", "--all", "--message", "Change")
    shell = Shell(topic)
    run(shell, "claim", "README.md", "--as", "ann")

    landed = run(shell, "land", "--wait", "--as", "ann")

    assert "left alone" not in landed
    assert git(bare, "symbolic-ref", "HEAD").strip() == "refs/heads/main"
    assert (main / "README.md").read_text(encoding="utf-8") == "changed\n"
