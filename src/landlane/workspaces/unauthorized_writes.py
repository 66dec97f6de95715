"""Record shell writes to paths that the writer may not change, until each is undone, moved or accepted."""

from __future__ import annotations

from landlane.errors import LandlaneError
from landlane.sessions.notices import add_notice
from landlane.store import records
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

OPEN = "open"
UNDONE = "undone"
MOVED = "moved"
ACCEPTED = "accepted"
CLEARED = "cleared"

HELD = "held"  # another session holds the path
STRAY = "stray"  # it lies outside of the writer's workspace
ROLE = "role"  # the writer's role may not change it
_NOUN = "breach"


@value
class Breach:
    """One write to what was another's. `commit` keeps what was there before, and after.

    `paths` are as they can be shown: bytes that are no text are escaped. With `is_blocking`, they cannot be
    committed or landed by the writer while it is open.
    """

    id: str
    state: str
    kind: str
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


def ref_of(breach_id: str) -> str:
    """The ref of a breach."""
    return f"refs/landlane/breaches/{breach_id}"


def next_breach_id(repo: Repository) -> str:
    """An id for a breach that is about to be written down: B1, B2."""
    return repo.change(lambda tx: records.next_id(tx, _NOUN))


def begin_breach(repo: Repository, session: Session, breach: Breach, notice: str = "") -> None:
    """Write down a breach, and leave word for whoever holds what was hit."""

    def work(tx: Transaction) -> None:
        records.put(tx, _NOUN, _document(breach), "found", session)
        if notice and breach.holder_session:
            add_notice(tx, breach.holder_session, notice)

    repo.change(work)


def list_breaches(repo: Repository, *, with_ended: bool = False) -> list[Breach]:
    """Those that are open, or all that ever were."""
    states = () if with_ended else (OPEN,)
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, _NOUN, states))
    return [_from(document) for document in found]


def find_breach(repo: Repository, breach_id: str) -> Breach:
    """One breach.

    Raises:
        LandlaneError: there is none of this id.
    """
    document = repo.store.view(lambda snapshot: records.find(snapshot, _NOUN, breach_id))
    if document is None:
        raise LandlaneError(
            f"there is no stray write {breach_id[:60]}",
            code="UNKNOWN_BREACH",
            hint="`landlane stray list` shows which there are",
        )
    return _from(document)


def end_breach(repo: Repository, session: Session | None, breach_id: str, state: str) -> Breach:
    """A breach is put right. Ending it a second time changes nothing."""

    def work(tx: Transaction) -> Breach:
        document = records.lock(tx, _NOUN, breach_id)
        assert document is not None
        breach = _from(document)
        if breach.state != OPEN:
            return breach
        ended = replace(breach, state=state, by=session.agent if session is not None else "")
        records.put(tx, _NOUN, _document(ended), state, session)
        return ended

    return repo.change(work)


def _document(breach: Breach) -> records.Document:
    return {**as_dict(breach), "paths": list(breach.paths)}


def _from(document: records.Document) -> Breach:
    document["paths"] = tuple(document["paths"])
    return Breach(**document)
