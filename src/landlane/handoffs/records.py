"""Find and list handoffs; overdue ones."""

from __future__ import annotations

from landlane.handoffs.model import SENT, Handoff, handoff_from, may_take
from landlane.handoffs.transfer import (
    NOUN,
    addressed_to,
    waiting_in,
)
from landlane.sessions.leases import sweep_if_due
from landlane.store import records
from landlane.tasks.model import ANYBODY
from landlane.tasks.records import unknown_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot

    Step = Callable[[str], None]


def find_handoff(repo: Repository, name: str) -> Handoff | None:
    """A handoff by its id, or the newest one of a task; nothing when there is none.

    Raises:
        Malformed: there is no such task, and no such handoff.
    """

    def look(snapshot: Snapshot) -> Handoff | None:
        found = records.find(snapshot, NOUN, name)
        if found is not None:
            return handoff_from(found)
        if snapshot.one("task_get", task=name) is None:
            raise unknown_task(name)
        of_task = records.by_key(snapshot, NOUN, name)
        return handoff_from(of_task[-1]) if of_task else None

    sweep_if_due(repo.store)
    return repo.store.view(look)


def newest_in(snapshot: Snapshot, task_id: str) -> Handoff | None:
    """What was handed over last with a task, whatever became of it."""
    found = records.by_key(snapshot, NOUN, task_id)
    return handoff_from(found[-1]) if found else None


def list_handoffs(repo: Repository, *, with_settled: bool = False) -> list[Handoff]:
    """The handoffs that wait to be accepted, the oldest first; or all there ever were."""

    def look(snapshot: Snapshot) -> list[Handoff]:
        if with_settled:
            return [handoff_from(document) for document in records.all_of(snapshot, NOUN)]
        return waiting_in(snapshot)

    sweep_if_due(repo.store)
    return repo.store.view(look)


def handed_to(repo: Repository, session: Session) -> list[Handoff]:
    """The handoffs that wait for this session: found by its name, so a successor finds them, too."""
    return repo.store.view(lambda snapshot: addressed_to(repo, snapshot, session))


def overdue_handoffs(repo: Repository) -> list[Handoff]:
    """The handoffs that the one they were for did not accept in time; they are anybody's now."""

    def look(snapshot: Snapshot) -> list[Handoff]:
        now = repo.store.wall_of(snapshot.now)
        return [one for one in waiting_in(snapshot) if one.to != ANYBODY and now >= one.until]

    return repo.store.view(look)


def is_offered(repo: Repository, handoff: Handoff, session: Session) -> bool:
    """Whether `next` may give this task to this session now."""

    def look(snapshot: Snapshot) -> bool:
        return may_take(handoff, session.agent, session.role, repo.store.wall_of(snapshot.now))

    return handoff.state == SENT and repo.store.view(look)
