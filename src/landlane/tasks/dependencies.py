"""Add dependencies; unblock tasks when one is done."""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.tasks.model import (
    BLOCKED,
    DONE,
    DROPPED,
    READY,
    find_loop,
    ring_error,
)
from landlane.tasks.rows import all_dependencies, dependencies_of, get_in, move_task, who, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


def add_dependency(repo: Repository, author: Session | None, task_id: str, after: str) -> Task:
    """Let a task wait for another.

    Raises:
        Malformed: one of them is unknown, or they would wait for each other; the ring is named.
        NotAllowed: the task is already under way, or the other was dropped.
    """

    def work(tx: Transaction) -> Task:
        before = get_in(tx, after)  # first: whoever ends it locks it before those behind it, too
        task = get_in(tx, task_id)
        if task.state not in (READY, BLOCKED):
            raise _too_late(f"{task_id} is {task.state}: it is too late to let it wait", task.state)
        if before.state == DROPPED:
            raise _too_late(f"{after} was dropped: {task_id} would wait for ever", before.state)
        ring = find_loop(_graph_with(tx, task_id, after), task_id)
        if ring:
            raise ring_error(ring)
        tx.run("task_after_add", task=task_id, after=after)
        waits = count_waits(tx, task_id)
        if waits and task.state == READY:
            move_task(tx, task, BLOCKED)
        tx.record("task.waits", *who(author), {"task": task_id, "after": after})
        return whole(tx, get_in(tx, task_id))

    return repo.change(work, areas={"//task-graph": True})


def _too_late(message: str, state: str) -> NotAllowed:
    return NotAllowed(message, code="TASK_WRONG_STATE", hint="let a new task wait instead", state=state)


def _graph_with(tx: Snapshot, task_id: str, after: str) -> dict[str, tuple[str, ...]]:
    graph: dict[str, tuple[str, ...]] = {task_id: (after,)}
    for task, before in all_dependencies(tx):
        graph[task] = (*graph.get(task, ()), before)
    return graph


def count_waits(tx: Transaction, task_id: str) -> int:
    """Count anew how many dependencies of a task are not done, and write it down."""
    waits = sum(state != DONE for _, state in dependencies_of(tx, task_id))
    tx.run("task_set_waits", task=task_id, waits_for=waits)
    return waits


def unblock_dependents(tx: Transaction, task_id: str) -> None:
    """Unblock the tasks that waited for a task that is done."""
    for row in tx.all("tasks_behind", task=task_id):
        task = get_in(tx, row["task"])
        # A reason of its own means that somebody blocked it by hand.
        if not count_waits(tx, task.id) and task.state == BLOCKED and not task.why:
            move_task(tx, task, READY, ready_at=tx.now)
            tx.record("task.unblocked", "", "", {"task": task.id, "why": f"{task_id} is done"})
