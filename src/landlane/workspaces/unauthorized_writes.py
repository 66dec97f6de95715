"""Record shell writes to paths that the writer may not change, until each is undone, moved or accepted."""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import LandlaneError
from landlane.sessions.notices import add_notice
from landlane.store import records
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction


class BreachState(StrEnum):
    """The state of a breach. An open one can end in any of the other states, and stays there."""

    OPEN = "open"
    UNDONE = "undone"
    MOVED = "moved"
    ACCEPTED = "accepted"
    CLEARED = "cleared"  # the files are as before, or the writer may write them now


class BreachKind(StrEnum):
    """Why the writer was not allowed to change the paths."""

    HELD = "held"  # another session holds them
    STRAY = "stray"  # they are outside of the writer's workspace
    ROLE = "role"  # the writer's role does not allow it


OPEN, UNDONE, MOVED, ACCEPTED, CLEARED = BreachState
_NOUN = "breach"


@value
class Breach:
    """One unauthorized write. `commit` keeps the files as they were before and after it.

    In `paths`, bytes that are not UTF-8 are escaped. With `is_blocking`, the writer cannot commit or land
    them while the breach is open.
    """

    id: str
    state: BreachState
    kind: BreachKind
    session: str
    agent: str
    root: str
    paths: tuple[str, ...]
    commit: str
    at: int
    holder: str = ""
    holder_session: str = ""
    task: str = ""
    is_blocking: bool = True
    by: str = ""

    @property
    def ref(self) -> str:
        """The ref that keeps its commit."""
        return ref_of(self.id)

    @classmethod
    def from_document(cls, document: records.Document) -> Breach:
        """Return the breach that a record describes."""
        state, kind = BreachState(document["state"]), BreachKind(document["kind"])
        fields: dict[str, Any] = {**document, "state": state, "kind": kind, "paths": tuple(document["paths"])}
        return cls(**fields)


def ref_of(breach_id: str) -> str:
    """Return the ref of a breach."""
    return f"refs/landlane/breaches/{breach_id}"


def next_breach_id(repo: Repository) -> str:
    """Return the id for a breach that is about to be recorded, such as B1."""
    return repo.change(lambda tx: records.next_id(tx, _NOUN))


def begin_breach(repo: Repository, session: Session, breach: Breach, notice: str = "") -> None:
    """Record a breach, and notify the session that holds the paths."""

    def work(tx: Transaction) -> None:
        records.put(tx, _NOUN, as_dict(breach), "found", session)
        if notice and breach.holder_session:
            add_notice(tx, breach.holder_session, notice)

    repo.change(work)


def list_breaches(repo: Repository, *, with_ended: bool = False) -> list[Breach]:
    """Return the open breaches, or all that ever were."""
    states = () if with_ended else (OPEN,)
    found = repo.store.view(lambda snapshot: records.find_all(snapshot, _NOUN, states))
    return [Breach.from_document(document) for document in found]


def find_breach(repo: Repository, breach_id: str) -> Breach:
    """Return one breach.

    Raises:
        LandlaneError: there is none of this id.
    """
    document = repo.store.view(lambda snapshot: records.find(snapshot, _NOUN, breach_id))
    if document is None:
        raise LandlaneError(
            f"no misplaced change {breach_id[:60]}",
            code="UNKNOWN_BREACH",
            hint="landlane misplaced list",
        )
    return Breach.from_document(document)


def end_breach(repo: Repository, session: Session | None, breach_id: str, state: BreachState) -> Breach:
    """End a breach. Ending it a second time changes nothing."""

    def work(tx: Transaction) -> Breach:
        document = records.lock(tx, _NOUN, breach_id)
        assert document is not None
        breach = Breach.from_document(document)
        if breach.state != OPEN:
            return breach
        ended = replace(breach, state=state, by=session.agent if session is not None else "")
        records.put(tx, _NOUN, as_dict(ended), state, session)
        return ended

    return repo.change(work)
