"""Attempts at a task in the store: begin, change, list."""

from __future__ import annotations

from landlane.store import records
from landlane.tasks.attempt_model import ENDED, RUNNING, Attempt
from landlane.tasks.extensions import installed
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading
    from landlane.tasks.model import Task

_NOUN = "attempt"


def begin_attempt(context: Context, session: Session, task: Task, **facts: object) -> Attempt:
    """Enter an attempt that is about to be made."""
    return context.change(lambda tx: begin_in(tx, context, session, task, **facts))


def begin_in(tx: Change, context: Context, session: Session, task: Task, **facts: object) -> Attempt:
    """The same within a transaction."""
    now = context.store.wall_of(tx.now)
    attempt = Attempt(
        id=records.next_id(tx, _NOUN),
        task=task.id,
        attempt=task.attempt,
        lineage=task.lineage,
        agent=session.agent,
        session=session.id,
        machine=context.processes.machine,
        keeper=as_dict(context.processes.current()),
        started_at=now,
        seen_at=now,
        **facts,  # type: ignore[arg-type]
    )
    records.put(tx, _NOUN, as_dict(attempt), "begun", session)
    return attempt


def note_sign(context: Context, attempt: Attempt, doing: str) -> None:
    """Write down that it lives, and what it is at; nobody is told of it, and nothing forced to the disk."""

    def work(tx: Change) -> None:
        found = records.lock(tx, _NOUN, attempt.id)
        if found is not None and found["state"] == RUNNING:
            seen_at = context.store.wall_of(tx.now)
            records.put_quietly(tx, _NOUN, {**found, "seen_at": seen_at, "doing": doing[:200]})

    context.store.change(work, is_durable=False)


def change_attempt(context: Context, attempt: Attempt, verb: str, **changes: object) -> Attempt:
    """Write down what became of an attempt; one that is over stays as it is."""

    def work(tx: Change) -> Attempt:
        found = records.lock(tx, _NOUN, attempt.id)
        now = Attempt(**found) if found else attempt
        if now.state == ENDED:
            return now
        now = replace(now, **changes)
        if now.state == ENDED and not now.ended_at:
            now = replace(now, ended_at=context.store.wall_of(tx.now))
        records.put(tx, _NOUN, as_dict(now), verb)
        if now.state == ENDED:
            installed().budgets.book(tx, context, now)  # whatever became of it, it is booked
        return now

    return context.change(
        work, areas=installed().budgets.booking_areas if changes.get("state") == ENDED else None
    )


def attempts_of(context: Context, task_id: str) -> list[Attempt]:
    """All attempts at a task, the oldest first."""
    found = context.store.view(lambda reading: records.by_key(reading, _NOUN, task_id))
    return sorted((Attempt(**document) for document in found), key=lambda one: (one.started_at, one.id))


def running_attempts(context: Context) -> list[Attempt]:
    """The attempts that are not over, or of which nobody has said so."""
    return context.store.view(running_in)


def running_in(reading: Reading) -> list[Attempt]:
    """The same, as one transaction sees it."""
    return [Attempt(**document) for document in records.all_of(reading, _NOUN, [RUNNING])]
