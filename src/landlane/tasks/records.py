"""Read, lock and move tasks: the only code that turns task rows into values and writes a task's state."""

from __future__ import annotations

import json

from landlane.errors import Malformed, NotAllowed, Stale
from landlane.sessions.leases import find_ancestors, sweep_if_due
from landlane.sessions.worker_sessions import find_supervisor
from landlane.store.journal_chain import JournalEntry
from landlane.tasks.extensions import installed, settle_due
from landlane.tasks.model import (
    ACTIVE,
    BLOCKED,
    DEAD,
    DONE,
    DROPPED,
    FAILED,
    IN_PROGRESS,
    READY,
    WAITING,
    Lesson,
    Task,
    check_transition,
    rank_of,
)
from landlane.text import nearest_word
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import TaskState


# Labels of a branch of a split task, and of a reviewer's task. What waits for these is settled at each move.
FAN_LABEL = "fan:"
REVIEW_LABEL = "reviews:"

# Journal entries from which the next owner of a task can learn.
_LESSON_KINDS = frozenset(
    {
        *("task.failed", "task.returned", "task.doubted", "task.blocked", "task.retried", "task.answered"),
        *("task.joined", "task.reviewed"),
    }
)


def find_task(snapshot: Snapshot, task_id: str) -> Task | None:
    """Return a task without its dependencies; None when there is none with this id."""
    row = snapshot.one("task_get", task=task_id)
    return Task.from_row(row) if row is not None else None


def task_titles(repo: Repository, task_ids: Iterable[str]) -> dict[str, str]:
    """Return the titles of these tasks by id, without those that do not exist."""

    def read(snapshot: Snapshot) -> dict[str, str]:
        found = [find_task(snapshot, task_id) for task_id in dict.fromkeys(task_ids) if task_id]
        return {task.id: task.title for task in found if task is not None}

    return repo.store.view(read)


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


def declared_patterns(stored: str) -> list[tuple[str, str]]:
    """Return the (text, kind) of each pattern in the stored form of a task's paths."""
    return [(text, kind) for text, kind in json.loads(stored)] if stored != "[]" else []


def task_paths(task: Task) -> tuple[str, ...]:
    """Return the paths that a task declares, as they were written."""
    return tuple(text for text, _ in declared_patterns(task.stored_paths))


def task_patterns(repo: Repository, task: Task) -> tuple[Pattern, ...]:
    """Return the patterns that a task declares."""
    pattern_of = repo.git.pattern_of
    return tuple(pattern_of(text, kind) for text, kind in declared_patterns(task.stored_paths))


def id_sort_key(task_id: str) -> tuple[int, str]:
    """Return a sort key that puts T9 before T10. Several tasks are always locked in this order."""
    return len(task_id), task_id


# Ids of other things, by their letter: what they are, and the command that shows one.
_OTHER_KINDS = {
    "L": ("a landing", "queue show"),
    "G": ("a gate", "gate show"),
    "V": ("a review", "review show"),
    "H": ("a handoff", "handoff show"),
    "R": ("a rescue", "rescue show"),
}


def unknown_task_error(snapshot: Snapshot, task_id: str) -> Malformed:
    """Return the error for an id that no task has; it names the one that was probably meant."""
    known = [str(row["id"]) for row in snapshot.all("tasks_all")]
    is_plain = task_id.isprintable() and task_id == task_id.strip() != ""
    name = task_id[:40] if is_plain else repr(task_id[:40])
    if not known:
        return Malformed(
            f"no task {name}; there are no tasks yet",
            code="UNKNOWN_TASK",
            hint="landlane task add 'What to do'",
        )
    if kind := _OTHER_KINDS.get(task_id[:1].upper()) if task_id[1:].isdecimal() else None:
        noun, command = kind
        name = task_id.upper()
        hint = f"see it: landlane {command} {name}"
        return Malformed(f"{name} is {noun}, not a task", code="UNKNOWN_TASK", hint=hint)
    swapped = next((one for one in known if sorted(one) == sorted(task_id.upper())), "")
    meant = swapped or nearest_word(task_id.upper(), reversed(known))
    facts = {"unknown": task_id, "meant": meant} if meant else {}
    return Malformed(
        f"no task {name}; the last one is {max(known, key=id_sort_key)}",
        code="UNKNOWN_TASK",
        hint=f"did you mean: landlane task show {meant}" if meant else "landlane task list",
        **facts,
    )


def lock_task(tx: Transaction, task_id: str) -> Task:
    """Lock a task until the transaction ends, and return it without its dependencies.

    Raises:
        Malformed: there is no such task.
    """
    row = tx.one("task_lock", task=task_id)
    if row is None:
        raise unknown_task_error(tx, task_id)
    return Task.from_row(row)


def with_dependencies(snapshot: Snapshot, task: Task) -> Task:
    """Return a task with its dependencies."""
    return _add_dependencies(task, dependencies_of(snapshot, task.id))


def _add_dependencies(task: Task, dependencies: Sequence[tuple[str, str]]) -> Task:
    """Return a task with its dependencies, and with those as the reason if nothing else blocks it."""
    if not dependencies:
        return task
    why = task.why
    if task.state == BLOCKED and not why:
        names = [
            f"{name} (dropped)" if state == DROPPED else name for name, state in dependencies if state != DONE
        ]
        why = f"waits for {', '.join(names)}"
    waiting = tuple(name for name, state in dependencies if state != DONE)
    return replace(task, after=tuple(name for name, _ in dependencies), open_after=waiting, why=why)


def actor_of(session: Session | None) -> tuple[str, str]:
    """Return the agent and the session for a journal entry; both are empty without a session."""
    return (session.agent, session.id) if session else ("", "")


def move_task(
    tx: Transaction,
    task: Task,
    new_state: TaskState,
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
    """Change the state of a task; without `keep_owner` it has no owner afterwards.

    Raises:
        NotAllowed: a task in this state cannot change to the new one.
    """
    check_transition(task.id, task.state, new_state)
    if task.state == WAITING:
        installed().follow_ups.leave_waiting(tx, task)
    for label in task.labels:
        if label.startswith((FAN_LABEL, REVIEW_LABEL)):
            tx.touched[label] = None
    since = task.ready_at if ready_at is None else ready_at
    tx.run(
        "task_move",
        task=task.id,
        state=new_state,
        why=why,
        next_action=task.next_action if next_action is None else next_action,
        owner=task.owner if keep_owner else "",
        session=task.session if keep_owner else "",
        failures=task.failures if failures is None else failures,
        lapses=task.lapses if lapses is None else lapses,
        head=task.head if head is None else head,
        result=task.result if result is None else result,
        # A task that comes back keeps its age, and so its place in the queue.
        rank=task.rank if new_state != READY else min(task.rank, rank_of(since, task.priority)),
        ready_at=since,
    )


def take_ownership(
    tx: Transaction, session: Session, task: Task, *, base: str = "", handoff: str = ""
) -> Task:
    """Give a task to a session, and return it: as a new attempt, or in the same attempt after a handoff.

    `base` is the commit that the work starts from.

    Raises:
        NotAllowed: a task in this state cannot become active.
    """
    check_transition(task.id, task.state, ACTIVE)
    attempt = task.attempt if handoff else task.attempt + 1
    tx.run("task_accept" if handoff else "task_take", task=task.id, owner=session.agent, session=session.id)
    facts = {"task": task.id, "attempt": attempt, "base": base} | ({"handoff": handoff} if handoff else {})
    tx.record("task.taken", *actor_of(session), facts)
    owner = {"owner": session.agent, "session": session.id}
    taken = replace(task, state=ACTIVE, attempt=attempt, taken_at=tx.now, why="", **owner)
    return with_dependencies(tx, taken)


def read_task(snapshot: Snapshot, task_id: str) -> Task:
    """Return a task without its dependencies.

    Raises:
        Malformed: there is no such task.
    """
    task = find_task(snapshot, task_id)
    if task is None:
        raise unknown_task_error(snapshot, task_id)
    return task


def get_task(repo: Repository, task_id: str) -> Task:
    """Return a task with its dependencies.

    Raises:
        Malformed: there is no such task.
    """

    def look(snapshot: Snapshot) -> Task:
        return with_dependencies(snapshot, read_task(snapshot, task_id))

    sweep_if_due(repo.store)
    return repo.store.view(look)


def list_tasks(repo: Repository, states: Collection[str] = ()) -> list[Task]:
    """Return all tasks, or those in these states, oldest first."""

    def look(snapshot: Snapshot) -> list[Task]:
        tasks = [Task.from_row(row) for row in snapshot.all("tasks_all")]
        state_of = {task.id: task.state for task in tasks}
        dependencies: dict[str, list[tuple[str, str]]] = {}
        for task_id, before in all_dependencies(snapshot):
            dependencies.setdefault(task_id, []).append((before, state_of[before]))
        return [
            _add_dependencies(task, dependencies.get(task.id, ()))
            for task in tasks
            if not states or task.state in states
        ]

    sweep_if_due(repo.store)
    settle_due(repo)
    return repo.store.view(look)


def list_tasks_in(snapshot: Snapshot) -> list[Task]:
    """Return all tasks without their dependencies, oldest first."""
    return [Task.from_row(row) for row in snapshot.all("tasks_all")]


def count_tasks(repo: Repository) -> dict[str, int]:
    """Return the number of tasks in each state that is not final."""
    rows = repo.store.view(lambda snapshot: snapshot.all("tasks_count"))
    return {row["state"]: row["tasks"] for row in rows}


def task_history(repo: Repository, task_id: str) -> list[JournalEntry]:
    """Return the journal entries about a task, oldest first.

    Raises:
        Malformed: there is no such task.
    """
    get_task(repo, task_id)
    return repo.store.view(lambda snapshot: history_in(snapshot, task_id))


def history_in(snapshot: Snapshot, task_id: str) -> list[JournalEntry]:
    """Return the journal entries about a task, oldest first."""
    return [JournalEntry.from_row(row) for row in snapshot.all("task_entries", task=task_id)]


def lessons_in(snapshot: Snapshot, task_id: str) -> tuple[Lesson, ...]:
    """Return what earlier owners of a task, and reviewers of their work, left for the next one."""
    found: list[Lesson] = []
    attempt = 0
    for entry in history_in(snapshot, task_id):
        facts = entry.facts()
        attempt = facts["attempt"] if entry.kind == "task.taken" else attempt
        if entry.kind in _LESSON_KINDS and facts.get("why"):
            why = str(facts.get("feedback") or facts["why"])
            found.append(Lesson(at=entry.at, kind=entry.kind, agent=entry.agent, attempt=attempt, why=why))
    return tuple(found)


def lessons_of(repo: Repository, task_id: str) -> tuple[Lesson, ...]:
    """Return what earlier owners of a task left for the next one."""
    return repo.store.view(lambda snapshot: lessons_in(snapshot, task_id))


def links_of(repo: Repository, task_id: str) -> list[tuple[str, str]]:
    """Return the tasks that look like a task, each with the reason."""
    rows = repo.store.view(lambda snapshot: snapshot.all("task_links_of", task=task_id))
    return [(row["other"], row["reason"]) for row in rows]


def require_owner(tx: Transaction, session: Session, task_id: str, *, allow_worker: bool = False) -> Task:
    """Lock and return a task that belongs to this session, or to one of its ancestors.

    With `allow_worker`, the session of a worker (see sessions/worker_sessions.py) counts as one, too. It may
    not end an attempt: its supervisor does.

    Raises:
        Stale: the task belongs to another session or to none.
    """
    task = lock_task(tx, task_id)
    is_own = task.session == session.id
    is_worker = False
    if task.session and not is_own and task.session in find_ancestors(tx, session.id):
        is_worker = find_supervisor(tx, session.id) == task.session
        is_own = allow_worker or not is_worker
    is_in_progress = task.state in IN_PROGRESS
    if is_own and is_in_progress:
        return task
    if is_worker and is_in_progress:
        message = f"{task_id} {task.title} is ended by {task.owner}, not by its worker {session.agent}"
        hint = "end with WorkComplete or WorkFailed; your result is verified then"
    else:
        held = f"belongs to {task.owner}" if task.owner and is_in_progress else f"is {task.state}, not yours"
        message = f"{task_id} {task.title} {held}"
        hint = f"see where it stands: landlane task show {task_id}"
    raise Stale(message, code="TASK_NOT_YOURS", hint=hint, holder=task.owner or None, state=task.state)


def wrong_state_error(task: Task, words: str) -> NotAllowed:
    """Return the error for a task whose state does not allow what was asked; `words` follow "it"."""
    hints = {
        BLOCKED: f"landlane task unblock {task.id}",
        ACTIVE: f"{task.owner} works on it: landlane task show {task.id}",
        FAILED: f"landlane task retry {task.id}",
        DEAD: f"landlane task retry {task.id}",
        WAITING: "a person answers it: landlane gate list",
    }
    return NotAllowed(
        f"{task.id} {task.title} is {task.state}; it {words}",
        code="TASK_WRONG_STATE",
        hint=hints.get(task.state, f"landlane task show {task.id}"),
        state=task.state,
    )
