"""Read, lock and move tasks: the only code that turns task rows into values and writes a task's state."""

from __future__ import annotations

import json

from landlane.errors import Malformed, NotAllowed, Stale
from landlane.sessions.leases import sweep_if_due
from landlane.sessions.read import find_ancestors
from landlane.sessions.worker_sessions import keeper_of
from landlane.store.journal_chain import Entry
from landlane.tasks.extensions import installed, settle_due
from landlane.tasks.model import (
    ACTIVE,
    AT_WORK,
    BLOCKED,
    DEAD,
    DONE,
    FAILED,
    READY,
    WAITING,
    Lesson,
    Task,
    check_transition,
    rank_of,
)
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


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


# What tells the next owner something.
_LESSONS = frozenset(
    {
        *("task.failed", "task.returned", "task.doubted", "task.blocked", "task.retried", "task.answered"),
        *("task.joined", "task.reviewed"),
    }
)


def get_task(repo: Repository, task_id: str) -> Task:
    """A task by its id.

    Raises:
        Malformed: there is no such task.
    """

    def look(snapshot: Snapshot) -> Task:
        return whole(snapshot, task_in(snapshot, task_id))

    sweep_if_due(repo.store)
    return repo.store.view(look)


def list_tasks(repo: Repository, states: Sequence[str] = ()) -> list[Task]:
    """All tasks in the order in which they were added, or those in these states."""

    def look(snapshot: Snapshot) -> list[Task]:
        tasks = [Task.from_row(row) for row in snapshot.all("tasks_all")]
        state_of = {task.id: task.state for task in tasks}
        after: dict[str, list[tuple[str, str]]] = {}
        for task_id, before in all_dependencies(snapshot):
            after.setdefault(task_id, []).append((before, state_of[before]))
        return [
            with_after(task, after.get(task.id, ())) for task in tasks if not states or task.state in states
        ]

    sweep_if_due(repo.store)
    settle_due(repo)
    return repo.store.view(look)


def count_tasks(repo: Repository) -> dict[str, int]:
    """How many tasks are in each state that is not over."""
    rows = repo.store.view(lambda snapshot: snapshot.all("tasks_count"))
    return {row["state"]: row["tasks"] for row in rows}


def task_history(repo: Repository, task_id: str) -> list[Entry]:
    """Everything that happened to a task, in order.

    Raises:
        Malformed: there is no such task.
    """
    get_task(repo, task_id)
    return repo.store.view(lambda snapshot: history_in(snapshot, task_id))


def history_in(snapshot: Snapshot, task_id: str) -> list[Entry]:
    """Everything that happened to a task, in order, as one transaction sees it."""
    return [Entry.from_row(row) for row in snapshot.all("task_entries", task=task_id)]


def lessons_in(snapshot: Snapshot, task_id: str) -> tuple[Lesson, ...]:
    """What earlier owners, and those who looked at their work, left behind."""
    found: list[Lesson] = []
    attempt = 0
    for entry in history_in(snapshot, task_id):
        facts = entry.facts()
        attempt = facts["attempt"] if entry.kind == "task.taken" else attempt
        if entry.kind in _LESSONS and facts.get("why"):
            why = str(facts.get("feedback") or facts["why"])
            found.append(Lesson(at=entry.at, kind=entry.kind, agent=entry.agent, attempt=attempt, why=why))
    return tuple(found)


def lessons_of(repo: Repository, task_id: str) -> tuple[Lesson, ...]:
    """What earlier owners of a task left behind."""
    return repo.store.view(lambda snapshot: lessons_in(snapshot, task_id))


def links_of(repo: Repository, task_id: str) -> list[tuple[str, str]]:
    """The tasks that a task was found to look like, and why."""
    rows = repo.store.view(lambda snapshot: snapshot.all("task_links_of", task=task_id))
    return [(row["other"], row["reason"]) for row in rows]


def owned(tx: Transaction, session: Session, task_id: str, *, by_hands: bool = False) -> Task:
    """A task that this session is at work on, or one whose subagent it is.

    `by_hands`: the session of the worker may do it, too (see sessions/worker_sessions.py), except for what
    ends an attempt.

    Raises:
        Stale: it is somebody else's by now, or nobody's.
    """
    task = get_in(tx, task_id)
    is_own = task.session == session.id
    are_hands = False
    if task.session and not is_own and task.session in find_ancestors(tx, session.id):
        are_hands = keeper_of(tx, session.id) == task.session
        is_own = by_hands or not are_hands
    if is_own and task.state in AT_WORK:
        return task
    held = f"{task.owner} is at work on it" if task.owner and task.state in AT_WORK else f"it is {task.state}"
    if are_hands and task.state in AT_WORK:
        raise Stale(
            f"{task_id} is not {session.agent}'s to end: {task.owner} holds it, and does that",
            code="TASK_NOT_YOURS",
            hint="end with WorkComplete or WorkFailed; what you return is judged and handed in then",
            holder=task.owner or None,
            state=task.state,
        )
    raise Stale(
        f"{task_id} is not (or no longer) {session.agent}'s: {held}",
        code="TASK_NOT_YOURS",
        hint="`landlane next` gives you a task of your own; what you did stays in your branch",
        holder=task.owner or None,
        state=task.state,
    )


def not_for_that(task: Task, words: str) -> NotAllowed:
    """A task is in no state for what somebody wants."""
    hints = {
        BLOCKED: f"landlane task unblock {task.id}",
        ACTIVE: f"{task.owner} is at work on it",
        FAILED: f"landlane task retry {task.id}",
        DEAD: f"landlane task retry {task.id}",
        WAITING: "`landlane gate list` shows the question, and a person answers it",
    }
    return NotAllowed(
        f"{task.id} is {task.state}: it {words}",
        code="TASK_WRONG_STATE",
        hint=hints.get(task.state, f"`landlane task show {task.id}` tells more"),
        state=task.state,
    )
