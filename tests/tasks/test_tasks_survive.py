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
    shell.run_json("task", "add", "Parse the settings file", "--path", "src/settings.py", "--kind", "chore")
    shell.run_json("task", "add", "Ship the release", "--after", "T1", "--kind", "chore", "--label", "urgent")
    shell.run_json("task", "add", "Draw a logo", "--kind", "chore")
    shell.run_json(
        "task", "add", "Parse settings file", "--path", "src/settings.py", "--kind", "chore", "--force"
    )
    shell.run_json("next", "--as", "ann")
    shell.run_json("task", "drop", "T3", "--why", "nobody wants one")


def seen(shell: Shell) -> list[tuple[object, ...]]:
    names = ("id", "title", "state", "owner", "paths", "after", "attempt", "labels", "why", "lineage")
    return [
        tuple(str(task[name]) for name in names) for task in shell.run_json("task", "list", "--all")["tasks"]
    ]


def test_a_rebuilt_store_has_the_same_tasks_and_continues(shell: Shell) -> None:
    fill(shell)
    before = seen(shell)
    links = shell.run_json("task", "show", "T4")["similar"]
    store = shell.folder / ".git" / "landlane" / "store.db"
    for path in store.parent.glob("store.db*"):
        path.unlink()
    store.write_bytes(b"not a database")

    assert shell.run_json("doctor", "--fix")["ok"]

    assert seen(shell) == before
    assert shell.run_json("task", "show", "T4")["similar"] == links
    assert shell.run_json("done", "T1", "--as", "ann")["task"]["state"] == "done"
    assert shell.run_json("task", "show", "T2")["task"]["state"] == "ready"
    assert shell.run_json("task", "add", "Something else", "--kind", "chore")["task"]["id"] == "T5"


def test_a_moved_store_has_the_same_tasks_and_continues(shell: Shell, tmp_path: Path) -> None:
    fill(shell)
    before = seen(shell)

    shell.run_json("store", "move", str(tmp_path / "elsewhere.db"))

    assert seen(shell) == before
    assert shell.run_json("done", "T1", "--as", "ann")["task"]["state"] == "done"
    assert shell.run_json("next", "--as", "bob")["task"]["id"] in ("T2", "T4")
    assert shell.run_json("log", "--verify")["ok"]


def test_paths_that_are_planned_later_are_taken_with_the_task(shell: Shell) -> None:
    shell.run_json("task", "add", "Tidy up", "--kind", "chore")

    planned = shell.run_json("task", "edit", "T1", "--path", "src/a.py", "--path", "docs/**")

    assert planned["task"]["paths"] == ["src/a.py", "docs/**"]
    taken = shell.run_json("next", "--as", "ann")
    assert [claim["pattern"] for claim in taken["claims"]] == ["src/a.py", "docs/**"]
    shell.run_error("TASK_WRONG_STATE", "task", "edit", "T1", "--path", "src/b.py", exit=6)
