"""The state folder is private, or shared with the group that git shares the repository with."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.support.git import git
from tests.support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def shell(repository: Path, usual_umask: None) -> Shell:
    return Shell(repository, {"LANDLANE_AGENT": "ann"})


def use(shell: Shell) -> None:
    """Run commands that write each kind of file."""
    shell.run_json("claim", "a.py")
    shell.run_json("task", "add", "One")
    shell.run("once", "key", "--", "true")
    shell.run("claim", "a.py", "--as", "bob", "--wait", "1ms")


def modes(shell: Shell) -> dict[str, int]:
    folder = shell.folder / ".git" / "landlane"
    paths = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in paths}


@pytest.mark.promise(
    "state.private",
    "Other users of the machine cannot read the state folder: not the store, journal or logs.",
)
def test_all_files_of_the_state_are_private(shell: Shell) -> None:
    use(shell)
    found = modes(shell)
    assert {"store.db", "store.db-wal", "journal.jsonl", "claims.json", "tasks.json", "wake"} <= set(found)
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}


def test_the_next_command_makes_an_open_folder_private(shell: Shell) -> None:
    use(shell)
    folder = shell.folder / ".git" / "landlane"
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shell.run_json("release", "--all")
    assert {name: oct(mode) for name, mode in modes(shell).items() if mode & 0o077} == {}


@pytest.mark.parametrize(
    ("value", "folder_mode", "file_mode"), [("group", 0o2770, 0o660), ("all", 0o2775, 0o664)]
)
def test_a_shared_repository_shares_its_state_but_no_secret(
    shell: Shell, value: str, folder_mode: int, file_mode: int
) -> None:
    git(shell.folder, "config", "core.sharedRepository", value)
    use(shell)
    found = modes(shell)
    shared = ("store.db", "store.db-wal", "journal.jsonl", "claims.json", "repository", "store-url")
    assert {name: oct(found[name]) for name in shared} == dict.fromkeys(shared, oct(file_mode))
    assert (found["."], found["wake"]) == (folder_mode, folder_mode)
    assert (found["sessions"] & 0o777, found["sessions/ann"]) == (0o700, 0o600)

    git(shell.folder, "config", "--unset", "core.sharedRepository")
    shell.run_json("release", "--all")
    assert {name: oct(mode) for name, mode in modes(shell).items() if mode & 0o077} == {}
