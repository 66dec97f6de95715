"""Errors about the place where a command is run name the place and a command that helps."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_outside_git_in_a_bare_repository_and_in_a_deleted_folder(tmp_path: Path) -> None:
    notes, bare, gone = tmp_path / "notes", tmp_path / "shop.git", tmp_path / "gone"
    for folder in (notes, gone):
        folder.mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True)

    outside = Shell(notes).run("claims")
    inside = Shell(bare).run("init", "--yes")
    deleted = Shell(gone).sh(f"rmdir {gone}; landlane claims")

    assert (outside.exit, inside.exit, deleted.exit) == (1, 1, 1)
    assert outside.err.splitlines() == [
        f"error: {notes} is not in a git repository [NO_REPOSITORY]",
        "hint: git init",
    ]
    assert inside.err.splitlines() == [
        f"error: {bare} is a bare repository and has no files [BARE_REPOSITORY]",
        "hint: git worktree add ../shop && cd ../shop",
    ]
    assert deleted.err.splitlines() == [
        "error: the current directory no longer exists [NO_FOLDER]",
        "hint: cd ~",
    ]
