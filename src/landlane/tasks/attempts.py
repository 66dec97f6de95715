"""Attempts at a task in the store: begin, change, list."""

from __future__ import annotations

from landlane.store import records
from landlane.tasks.extensions import installed
from landlane.tasks.model import ENDED, RUNNING, Attempt
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task

_NOUN = "attempt"


def begin_attempt(repo: Repository, session: Session, task: Task, **facts: object) -> Attempt:
    """Enter an attempt that is about to be made."""
    return repo.change(lambda tx: begin_in(tx, repo, session, task, **facts))


def begin_in(tx: Transaction, repo: Repository, session: Session, task: Task, **facts: object) -> Attempt:
    """The same within a transaction."""
    now = repo.store.wall_of(tx.now)
    attempt = Attempt(
        id=records.next_id(tx, _NOUN),
        task=task.id,
        attempt=task.attempt,
        lineage=task.lineage,
        agent=session.agent,
        session=session.id,
        machine=repo.processes.machine,
        keeper=as_dict(repo.processes.current()),
        started_at=now,
        seen_at=now,
        **facts,  # type: ignore[arg-type]
    )
    records.put(tx, _NOUN, as_dict(attempt), "begun", session)
    return attempt


def note_sign(repo: Repository, attempt: Attempt, doing: str) -> None:
    """Write down that it lives, and what it is at; nobody is told of it, and nothing forced to the disk."""

    def work(tx: Transaction) -> None:
        found = records.lock(tx, _NOUN, attempt.id)
        if found is not None and found["state"] == RUNNING:
            seen_at = repo.store.wall_of(tx.now)
            records.put_quietly(tx, _NOUN, {**found, "seen_at": seen_at, "doing": doing[:200]})

    repo.store.change(work, is_durable=False)


def change_attempt(repo: Repository, attempt: Attempt, verb: str, **changes: object) -> Attempt:
    """Write down what became of an attempt; one that is over stays as it is."""

    def work(tx: Transaction) -> Attempt:
        found = records.lock(tx, _NOUN, attempt.id)
        now = Attempt(**found) if found else attempt
        if now.state == ENDED:
            return now
        now = replace(now, **changes)
        if now.state == ENDED and not now.ended_at:
            now = replace(now, ended_at=repo.store.wall_of(tx.now))
        records.put(tx, _NOUN, as_dict(now), verb)
        if now.state == ENDED:
            installed().budgets.book(tx, repo, now)  # whatever became of it, it is booked
        return now

    return repo.change(
        work, areas=installed().budgets.booking_areas if changes.get("state") == ENDED else None
    )


def attempts_of(repo: Repository, task_id: str) -> list[Attempt]:
    """All attempts at a task, the oldest first."""
    found = repo.store.view(lambda snapshot: records.by_key(snapshot, _NOUN, task_id))
    return sorted((Attempt(**document) for document in found), key=lambda one: (one.started_at, one.id))


def running_attempts(repo: Repository) -> list[Attempt]:
    """The attempts that are not over, or of which nobody has said so."""
    return repo.store.view(running_in)


def running_in(snapshot: Snapshot) -> list[Attempt]:
    """The same, as one transaction sees it."""
    return [Attempt(**document) for document in records.all_of(snapshot, _NOUN, [RUNNING])]
