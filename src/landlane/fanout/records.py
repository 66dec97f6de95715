"""Branches and results of a fan-out in the store."""

from __future__ import annotations

from landlane.fanout.model import (
    JOINED,
    Branch,
    Fan,
)
from landlane.store import records
from landlane.tasks.model import BLOCKED, BRANCH_ENDED, DONE, Task
from landlane.tasks.records import dependencies_of, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task


NOUN = "fan"

_FAILED = BRANCH_ENDED - {DONE}


def fan_from(document: records.Document) -> Fan:
    """A fan from its record."""
    return Fan(**document)


def children_of(snapshot: Snapshot, fan: Fan) -> tuple[Task, ...]:
    """Return the tasks that a task was split into."""
    found = _children(snapshot, fan)
    return tuple(whole(snapshot, found[one]) for one in fan.children if one in found)


def _children(snapshot: Snapshot, fan: Fan) -> dict[str, Task]:
    rows = snapshot.all("tasks_among", ids=list(fan.children))
    return {task.id: task for task in map(Task.from_row, rows)}


def branches_of(snapshot: Snapshot, fan: Fan) -> tuple[Branch, ...]:
    """Return the branches of a split task as they are now."""
    tasks = _children(snapshot, fan)
    tasks = {one: whole(snapshot, task) if task.state == BLOCKED else task for one, task in tasks.items()}
    stuck = _stuck(snapshot, list(tasks.values()))
    return tuple(
        Branch(
            task=one,
            name=name,
            state=tasks[one].state,
            result=tasks[one].result,
            head=tasks[one].head,
            why=tasks[one].why,
            is_stuck=one in stuck,
        )
        for one, name in zip(fan.children, fan.names, strict=True)
    )


def _stuck(snapshot: Snapshot, tasks: Sequence[Task]) -> set[str]:
    """Those that wait for one that ended without being done, or for one that does."""
    found: set[str] = set()
    blocked = {task.id: dependencies_of(snapshot, task.id) for task in tasks if task.state == BLOCKED}
    while True:
        more = {
            task_id
            for task_id, befores in blocked.items()
            if task_id not in found and any(before in found or state in _FAILED for before, state in befores)
        }
        if not more:
            return found
        found |= more


def results_of(snapshot: Snapshot, fan: Fan) -> tuple[Branch, ...]:
    """All results and failures in the order of the plan: as the join was given them, or as they are now."""
    if fan.state == JOINED:
        return tuple(Branch(**one) for one in fan.results)
    return branches_of(snapshot, fan)
