"""Find and list handoffs."""

from __future__ import annotations

from landlane.handoffs.model import Handoff
from landlane.handoffs.transfer import NOUN, addressed_to, handoffs_in, newest_handoff, waiting_in
from landlane.sessions.leases import sweep_if_due
from landlane.store import records
from landlane.tasks.records import read_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


def find_handoff(repo: Repository, name: str) -> Handoff | None:
    """Return a handoff by its id, or the newest of a task; None if the task was never handed off.

    Raises:
        Malformed: there is neither such a task nor such a handoff.
    """

    def look(snapshot: Snapshot) -> Handoff | None:
        document = records.find(snapshot, NOUN, name)
        if document is not None:
            return Handoff.from_document(document)
        read_task(snapshot, name)
        return newest_handoff(snapshot, name)

    sweep_if_due(repo.store)
    return repo.store.view(look)


def list_handoffs(repo: Repository, *, with_settled: bool = False) -> list[Handoff]:
    """Return the handoffs that wait to be accepted, or all, oldest first."""
    sweep_if_due(repo.store)
    return repo.store.view(handoffs_in if with_settled else waiting_in)


def handed_to(repo: Repository, session: Session) -> list[Handoff]:
    """Return the handoffs that wait for this session; they are found by its name, also by a later session."""
    return repo.store.view(lambda snapshot: addressed_to(repo, snapshot, session))
