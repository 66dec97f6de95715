"""Tasks come along when the store is rebuilt or moved, and their paths can be planned later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance


def fill(shell: Shell) -> None:
    """A task at work, one that waits for it, one that was given up, one that looks like another."""
    shell.ask("task", "add", "Parse the settings file", "--path", "src/settings.py", "--kind", "chore")
    shell.ask("task", "add", "Ship the release", "--after", "T1", "--kind", "chore", "--label", "urgent")
    shell.ask("task", "add", "Draw a logo", "--kind", "chore")
    shell.ask("task", "add", "Parse settings file", "--path", "src/settings.py", "--kind", "chore", "--force")
    shell.ask("next", "--as", "ann")
    shell.ask("task", "drop", "T3", "--why", "nobody wants one")


def seen(shell: Shell) -> list[tuple[object, ...]]:
    names = ("id", "title", "state", "owner", "paths", "after", "attempt", "labels", "why", "lineage")
    return [tuple(str(task[name]) for name in names) for task in shell.ask("task", "list")["tasks"]]


def test_a_rebuilt_store_has_the_same_tasks_and_goes_on(shell: Shell) -> None:
    fill(shell)
    before = seen(shell)
    links = shell.ask("task", "show", "T4")["similar"]
    store = shell.folder / ".git" / "landlane" / "store.db"
    for path in store.parent.glob("store.db*"):
        path.unlink()
    store.write_bytes(b"not a database")

    assert shell.ask("doctor", "--fix")["ok"]

    assert seen(shell) == before
    assert shell.ask("task", "show", "T4")["similar"] == links
    assert shell.ask("done", "T1", "--as", "ann")["task"]["state"] == "done"
    assert shell.ask("task", "show", "T2")["task"]["state"] == "ready"
    assert shell.ask("task", "add", "Something else", "--kind", "chore")["task"]["id"] == "T5"


def test_a_moved_store_has_the_same_tasks_and_goes_on(shell: Shell, tmp_path: Path) -> None:
    fill(shell)
    before = seen(shell)

    shell.ask("store", "move", str(tmp_path / "elsewhere.db"))

    assert seen(shell) == before
    assert shell.ask("done", "T1", "--as", "ann")["task"]["state"] == "done"
    assert shell.ask("next", "--as", "bob")["task"]["id"] in ("T2", "T4")
    assert shell.ask("journal", "--verify")["ok"]


def test_paths_that_are_planned_later_are_taken_with_the_task(shell: Shell) -> None:
    shell.ask("task", "add", "Tidy up", "--kind", "chore")

    planned = shell.ask("task", "plan", "T1", "src/a.py", "docs/**")

    assert planned["task"]["paths"] == ["src/a.py", "docs/**"]
    taken = shell.ask("next", "--as", "ann")
    assert [claim["pattern"] for claim in taken["claims"]] == ["src/a.py", "docs/**"]
    shell.refuse("TASK_WRONG_STATE", "task", "plan", "T1", "src/b.py", exit=6)
