"""A repository that was moved: every command says the same one thing, and one command fixes it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


@pytest.fixture
def moved(repository: Path) -> Shell:
    """A repository with the user's own hook and a workspace, moved to another folder."""
    shell = Shell(repository)
    hook = repository / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ntouch "$(git rev-parse --show-toplevel)/hook-ran"\n')
    hook.chmod(0o755)
    shell.run_json("init", "--yes", "--no-clients")
    shell.run_json("task", "add", "One", "--path", "one.txt")
    shell.run_json("next", "--as", "ann")
    shell.run_json("workspace", "open", "T1", "--as", "ann")
    place = repository.parent / "elsewhere"
    shutil.move(repository, place)
    return Shell(place)


def test_a_moved_repository_says_one_thing_and_one_command_fixes_it(moved: Shell, repository: Path) -> None:
    for command in ((), ("inbox",)):
        shown = moved.run_text(*command)
        assert f"moved here from {repository}" in shown, command
        assert shown.count("✗") == 1, shown
        assert "landlane doctor --fix" in shown
    doctor = moved.run("doctor")
    assert doctor.exit == 1
    assert doctor.out.count("✗") == 1, doctor
    assert f"moved here from {repository}" in doctor.out

    moved.run("doctor", "--fix")

    assert "moved here" not in moved.run_text()
    assert "moved here" not in moved.run("doctor").out
    (workspace,) = moved.run_json("workspace", "list")["workspaces"]
    assert workspace["state"] == "open"
    inside = moved.at(workspace["path"])
    assert inside.git("rev-parse", "--abbrev-ref", "HEAD") == "landlane/T1-1/work\n"
    (inside.folder / "one.txt").write_text("one\n")
    inside.git("add", "one.txt")
    inside.with_env(LANDLANE_AGENT="ann").git("commit", "--quiet", "-m", "One")
    assert (inside.folder / "hook-ran").exists(), "the user's own hook runs"


@pytest.mark.parametrize("command", [("doctor", "--fix"), ("init", "--yes", "--no-clients")])
@pytest.mark.parametrize("own", [None, ".githooks"])
def test_after_a_move_the_own_hooks_run_and_undo_restores_the_config(
    repository: Path, command: tuple[str, ...], own: str | None
) -> None:
    shell = Shell(repository)
    if own:
        shell.git("config", "core.hooksPath", own)
    hook = repository / (own or ".git/hooks") / "post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hook-ran\n")
    hook.chmod(0o755)
    config = (repository / ".git/config").read_bytes()
    shell.run_json("init", "--yes", "--no-clients")
    place = repository.parent / "elsewhere"
    shutil.move(repository, place)
    moved = Shell(place)

    moved.run(*command)

    moved.git("commit", "--quiet", "--allow-empty", "-m", "Nothing")
    assert (place / "hook-ran").exists(), "the user's own hook runs"
    assert "moved here" not in moved.run_text()
    moved.run_json("init", "--undo", "--yes")
    # doctor --fix also sets limits for git, which undo removes with the last workspace.
    assert (place / ".git/config").read_bytes() == config


def test_a_copy_beside_the_original_is_not_a_move(repository: Path) -> None:
    shell = Shell(repository)
    shell.run_json("init", "--yes", "--no-clients")
    shutil.copytree(repository, repository.parent / "copy")

    assert "moved here" not in Shell(repository.parent / "copy").run("doctor").out
