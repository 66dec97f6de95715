"""Begin, change and list the attempts at tasks."""

from __future__ import annotations

from landlane.store import records
from landlane.tasks.extensions import installed
from landlane.tasks.model import ATTEMPT_TRANSITIONS, Attempt, AttemptState
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task

_NOUN = "attempt"


def begin_attempt(
    tx: Transaction, repo: Repository, session: Session, task: Task, **facts: object
) -> Attempt:
    """Record an attempt that is about to start."""
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


def record_activity(repo: Repository, attempt: Attempt, doing: str) -> None:
    """Record that an attempt is alive and what it is doing, without a journal entry and without fsync."""

    def work(tx: Transaction) -> None:
        document = records.lock(tx, _NOUN, attempt.id)
        if document is not None and document["state"] == AttemptState.RUNNING:
            seen_at = repo.store.wall_of(tx.now)
            records.put_without_entry(tx, _NOUN, {**document, "seen_at": seen_at, "doing": doing[:200]})

    repo.store.change(work, is_durable=False)


def change_attempt(repo: Repository, attempt: Attempt, verb: str, **changes: object) -> Attempt:
    """Change an attempt and return it; one that has ended stays as it is. Its cost is booked when it ends."""

    def work(tx: Transaction) -> Attempt:
        document = records.lock(tx, _NOUN, attempt.id)
        before = Attempt.from_document(document) if document else attempt
        changed = replace(before, **changes)
        if changed.state not in ATTEMPT_TRANSITIONS[before.state]:
            return before
        has_ended = changed.state == AttemptState.ENDED
        if has_ended and not changed.ended_at:
            changed = replace(changed, ended_at=repo.store.wall_of(tx.now))
        records.put(tx, _NOUN, as_dict(changed), verb)
        if has_ended:
            installed().budgets.book(tx, repo, changed)
        return changed

    is_end = changes.get("state") == AttemptState.ENDED
    return repo.change(work, areas=installed().budgets.booking_areas if is_end else None)


def attempts_of(repo: Repository, task_id: str) -> list[Attempt]:
    """Return all attempts at a task, oldest first."""
    documents = repo.store.view(lambda snapshot: records.find_by_key(snapshot, _NOUN, task_id))
    attempts = map(Attempt.from_document, documents)
    return sorted(attempts, key=lambda attempt: (attempt.started_at, attempt.id))


def running_attempts(repo: Repository) -> list[Attempt]:
    """Return the attempts that have not ended."""
    return repo.store.view(running_attempts_in)


def running_attempts_in(snapshot: Snapshot) -> list[Attempt]:
    """Return the attempts that have not ended, inside a transaction."""
    documents = records.find_all(snapshot, _NOUN, [AttemptState.RUNNING])
    return [Attempt.from_document(document) for document in documents]
