"""Read fan-outs and their branches from the store."""

from __future__ import annotations

from landlane.fanout.model import JOINED, BranchResult, Fan
from landlane.store import records
from landlane.tasks.model import BLOCKED, DONE, FINISHED, Task
from landlane.tasks.records import dependencies_of, with_dependencies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from landlane.store.interface import Snapshot


NOUN = "fan"


def fans_in(snapshot: Snapshot, states: Sequence[str] = ()) -> list[Fan]:
    """Return all fan-outs, or the unsettled ones in these states, oldest first."""
    return [Fan.from_document(document) for document in records.find_all(snapshot, NOUN, states)]


def fans_of_task(snapshot: Snapshot, task_id: str, state: str = "") -> list[Fan]:
    """Return the fan-outs of a task, newest last."""
    return [Fan.from_document(document) for document in records.find_by_key(snapshot, NOUN, task_id, state)]


def children_of(snapshot: Snapshot, fan: Fan) -> dict[str, Task]:
    """Return the tasks that a task was split into, by id, in the order of the plan."""
    rows = snapshot.all("tasks_among", ids=list(fan.children))
    tasks = {task.id: task for task in map(Task.from_row, rows)}
    return {task_id: tasks[task_id] for task_id in fan.children if task_id in tasks}


def branches_of(snapshot: Snapshot, fan: Fan) -> tuple[BranchResult, ...]:
    """Return the branches of a split task as they are now."""
    tasks = {  # the dependencies of a blocked task are the reason for its state
        task.id: with_dependencies(snapshot, task) if task.state == BLOCKED else task
        for task in children_of(snapshot, fan).values()
    }
    stuck = _find_stuck(snapshot, tasks.values())
    return tuple(
        BranchResult(
            task=task_id,
            name=name,
            state=tasks[task_id].state,
            result=tasks[task_id].result,
            head=tasks[task_id].head,
            why=tasks[task_id].why,
            is_stuck=task_id in stuck,
        )
        for task_id, name in zip(fan.children, fan.names, strict=True)
    )


def _find_stuck(snapshot: Snapshot, tasks: Iterable[Task]) -> set[str]:
    """Return the blocked tasks that wait, directly or indirectly, for one that ended without being done."""
    stuck: set[str] = set()
    blocked = {task.id: dependencies_of(snapshot, task.id) for task in tasks if task.state == BLOCKED}
    while True:
        more = {
            task_id
            for task_id, befores in blocked.items()
            if any(before in stuck or state in FINISHED - {DONE} for before, state in befores)
        }
        if more <= stuck:
            return stuck
        stuck |= more


def results_of(snapshot: Snapshot, fan: Fan) -> tuple[BranchResult, ...]:
    """Return results and failures in the order of the plan: as they were at the join, or as they are now."""
    if fan.state == JOINED:
        return tuple(BranchResult(**result) for result in fan.results)
    return branches_of(snapshot, fan)
