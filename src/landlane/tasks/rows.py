"""Tasks between rows and values, and the one place where a task's state is written."""

from __future__ import annotations

import json

from landlane.errors import Malformed
from landlane.tasks.extensions import installed
from landlane.tasks.model import BLOCKED, DONE, READY, WAITING, Task, check_transition
from landlane.tasks.offer_order import rank_of
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction


# Labels of a branch of a split task, and of a task in which somebody reviews: others wait for these.
FAN_LABEL = "fan:"
REVIEW_LABEL = "reviews:"
FOLLOWED = (FAN_LABEL, REVIEW_LABEL)


def find_task(snapshot: Snapshot, task_id: str) -> Task | None:
    """Return a task, if there is one of this id; its dependencies are read separately."""
    row = snapshot.one("task_get", task=task_id)
    return Task.from_row(row) if row is not None else None


def find_task_by_key(snapshot: Snapshot, key: str) -> Task | None:
    """Return the task that was added under a key of the caller's."""
    row = snapshot.one("task_by_key", key=key)
    return Task.from_row(row) if row is not None else None


def tasks_of(snapshot: Snapshot, session_id: str) -> list[Task]:
    """Return the tasks that a session owns or has queued to land."""
    return [Task.from_row(row) for row in snapshot.all("tasks_of_session", session=session_id)]


def dependencies_of(snapshot: Snapshot, task_id: str) -> list[tuple[str, str]]:
    """Return the tasks that a task depends on, each with its state."""
    return [(row["after"], row["state"]) for row in snapshot.all("task_after_of", task=task_id)]


def all_dependencies(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return every dependency as (task, the task before it)."""
    return [(row["task"], row["after"]) for row in snapshot.all("task_after_all")]


def pattern_pairs(stored: str) -> list[tuple[str, str]]:
    """The declared patterns as (text, kind)."""
    return [(text, kind) for text, kind in json.loads(stored)] if stored != "[]" else []


def id_order(task_id: str) -> tuple[int, str]:
    """T9 comes before T10. Whoever locks several tasks locks them in this order."""
    return len(task_id), task_id


def unknown_task(task_id: str) -> Malformed:
    """There is no such task."""
    return Malformed(
        f"there is no task {task_id[:40]!r}", code="UNKNOWN_TASK", hint="`landlane task list` shows them"
    )


def get_in(tx: Transaction, task_id: str) -> Task:
    """A task as it stands, held still until the transaction ends; what it waits for is asked separately.

    Raises:
        Malformed: there is no such task.
    """
    row = tx.one("task_lock", task=task_id)
    if row is None:
        raise unknown_task(task_id)
    return Task.from_row(row)


def whole(snapshot: Snapshot, task: Task) -> Task:
    """The task with those it waits for, and with that as its reason if it is blocked for nothing else."""
    return with_after(task, dependencies_of(snapshot, task.id))


def with_after(task: Task, after: Sequence[tuple[str, str]]) -> Task:
    """The task with those it waits for, each with its state."""
    why = task.why
    if not after:
        return task
    if task.state == BLOCKED and not why:
        waits = [
            before if state != "dropped" else f"{before} (dropped)"
            for before, state in after
            if state != DONE
        ]
        why = f"waits for {', '.join(waits)}"
    return replace(task, after=tuple(before for before, _ in after), why=why)


def who(session: Session | None) -> tuple[str, str]:
    """Who acts, as the journal wants it."""
    return (session.agent, session.id) if session else ("", "")


def move_task(
    tx: Transaction,
    task: Task,
    then: str,
    *,
    why: str = "",
    keep_owner: bool = False,
    failures: int | None = None,
    lapses: int | None = None,
    head: str | None = None,
    result: str | None = None,
    ready_at: int | None = None,
    next_action: str | None = None,
) -> None:
    """Give a task another state. Nothing else writes it.

    Raises:
        NotAllowed: there is no way from the one state to the other.
    """
    check_transition(task.id, task.state, then)
    if task.state == WAITING:
        installed().follow_ups.leave_waiting(tx, task)
    for label in task.labels:
        if label.startswith(FOLLOWED):
            tx.touched[label] = None
    since = task.ready_at if ready_at is None else ready_at
    tx.run(
        "task_move",
        task=task.id,
        state=then,
        why=why,
        next_action=task.next_action if next_action is None else next_action,
        owner=task.owner if keep_owner else "",
        session=task.session if keep_owner else "",
        failures=task.failures if failures is None else failures,
        lapses=task.lapses if lapses is None else lapses,
        head=task.head if head is None else head,
        result=task.result if result is None else result,
        # A task that comes back keeps its age: whoever waited long is not sent to the end of the line.
        rank=task.rank if then != READY else min(task.rank, rank_of(since, task.priority)),
        ready_at=since,
        max_attempts=task.max_attempts,
    )


def task_in(snapshot: Snapshot, task_id: str) -> Task:
    """A task as it stands.

    Raises:
        Malformed: there is no such task.
    """
    task = find_task(snapshot, task_id)
    if task is None:
        raise unknown_task(task_id)
    return task
