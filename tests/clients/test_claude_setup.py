"""Claude Code's setup on disk: what keeps the hooks from firing is found, and what does not is left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from landlane.clients.claude.setup import SETUP
from landlane.clients.setup_checks import installed_version
from landlane.clients.setup_files import ClientEnvironment
from landlane.testing.repositories import make_repository

pytestmark = pytest.mark.integration

CURRENT = "2.1.325 (Claude Code)\n"
Json = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> ClientEnvironment:
    """A checkout with our hooks, and a program that is called claude."""
    root, home, programs = (tmp_path / name for name in ("root", "home", "bin"))
    make_repository(root)
    for folder in (home, programs, tmp_path / "landlane/hook_entry"):
        folder.mkdir(parents=True)
    lean = tmp_path / "landlane/hook_entry/client_hook.py"
    lean.touch()
    program = programs / "claude"
    program.touch(mode=0o755)
    (hooks,) = SETUP.wanted_files(lambda word, _is_guard: f"{sys.executable} -I -S {lean} claude {word}")
    write(root / SETUP.path, hooks.content)
    return ClientEnvironment(root=str(root), home=str(home), search_path=str(programs), variables={})


def write(path: Path, content: Json | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def found(place: ClientEnvironment, release: str = CURRENT) -> list[tuple[bool, str]]:
    return [(one.is_open, one.what) for one in SETUP.find_problems(place, lambda _words: release)]


def change(place: ClientEnvironment, old: str, new: str) -> None:
    path = Path(place.root, SETUP.path)
    path.write_text(path.read_text().replace(old, new))


def test_complete_setup_has_no_problems(place: ClientEnvironment) -> None:
    assert found(place) == []
    assert installed_version(place, "claude", lambda _words: CURRENT) == "2.1.325"


def test_hooks_in_the_main_checkout_count_in_its_worktrees(place: ClientEnvironment, tmp_path: Path) -> None:
    worktree = tmp_path / "worktree"
    subprocess.run(["git", "-C", place.root, "worktree", "add", "-q", str(worktree)], check=True)
    there = ClientEnvironment(
        root=str(worktree), home=place.home, search_path=place.search_path, variables={}
    )
    assert found(there) == []
    write(worktree / SETUP.path, {"disableAllHooks": True})
    assert found(there) == [(True, "Claude Code's hooks are switched off")]


@pytest.mark.parametrize("where", ["~/.claude/settings.json", ".claude/settings.json", SETUP.path])
def test_hooks_that_are_switched_off_anywhere_are_an_open_guard(place: ClientEnvironment, where: str) -> None:
    path = Path(place.home, where[2:]) if where.startswith("~/") else Path(place.root, where)
    settings: Json = json.loads(path.read_text()) if path.exists() else {}
    write(path, settings | {"disableAllHooks": True})
    assert found(place) == [(True, "Claude Code's hooks are switched off")]


def test_a_home_of_another_name_is_looked_at(place: ClientEnvironment, tmp_path: Path) -> None:
    write(tmp_path / "other/settings.json", {"disableAllHooks": True})
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / "other")}
    there = ClientEnvironment(root=place.root, home=place.home, search_path="", variables=environment)
    assert found(there) == [(True, "Claude Code's hooks are switched off")]


@pytest.mark.parametrize(
    ("release", "is_old"), [("2.1.294 (Claude Code)", True), ("2.1.295 (Claude Code)", False), ("", False)]
)
def test_a_release_that_ignores_failing_hooks_is_named(
    place: ClientEnvironment, release: str, is_old: bool
) -> None:
    assert bool(found(place, release)) is is_old


def test_missing_hooks_are_named_and_a_missing_guard_is_an_open_guard(place: ClientEnvironment) -> None:
    Path(place.root, SETUP.path).unlink()
    seen = found(place)
    assert (True, f"Claude Code has no hook of ours for PreToolUse in {SETUP.path}") in seen
    assert (False, f"Claude Code has no hook of ours for Stop in {SETUP.path}") in seen


def test_a_guard_for_fewer_tools_is_not_taken_for_ours(place: ClientEnvironment) -> None:
    change(place, "Edit|Write|", "Edit|")
    assert (True, f"Claude Code has no hook of ours for PreToolUse in {SETUP.path}") in found(place)


def test_a_guard_that_does_not_fail_closed_is_named(place: ClientEnvironment) -> None:
    change(place, '"onFailure": "block"', '"onFailure": "allow"')
    assert found(place) == [(False, f"{SETUP.path} lets edits pass when our hook fails")]


def test_an_interpreter_that_is_gone_is_named(place: ClientEnvironment) -> None:
    change(place, sys.executable, "/gone/python")
    assert found(place) == [(False, "Claude Code's hooks run /gone/python, which is not there")]


@pytest.mark.parametrize("text", ["{", "[]", '// Claude Code reads no comments\n{"hooks": {}}'])
def test_settings_that_claude_cannot_read_are_an_open_guard(place: ClientEnvironment, text: str) -> None:
    write(Path(place.root, SETUP.path), text)
    ((is_open, what),) = found(place)
    assert is_open
    assert "cannot be read" in what


@pytest.mark.parametrize("hooks", [[], {"Stop": 3}, {"Stop": [1]}, {"Stop": [{"hooks": [None]}]}, "x"])
def test_odd_hooks_of_others_do_not_upset_the_search(place: ClientEnvironment, hooks: object) -> None:
    write(Path(place.root, SETUP.path), {"hooks": hooks})
    assert all("has no hook of ours" in what for _, what in found(place))
