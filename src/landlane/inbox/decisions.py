"""Record the decisions of people, and how long each took: from showing the item to its answer."""

from __future__ import annotations

from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

LONGEST_MS = 15 * 60_000  # who takes longer did something else meanwhile
_NOUN = "shown"
_SHOWN, _ANSWERED = "shown", "answered"


def note_shown(repo: Repository, person: str, item: str) -> None:
    """Record that an item of the inbox is shown to a person now."""

    def work(tx: Transaction) -> None:
        _put(tx, item, person, _SHOWN, tx.now)

    repo.store.change(work, is_durable=False)


def note_answered(repo: Repository, session: Session, item: str) -> None:
    """Journal that a person has answered an item, with the time it took; agents' answers do not count."""
    if not session.is_person:
        return

    def work(tx: Transaction) -> None:
        shown = records.lock(tx, _NOUN, item)
        is_known = shown is not None and (shown["state"], shown["person"]) == (_SHOWN, session.agent)
        spent_ms = (
            min(max(tx.now - int(shown["at"]), 0), LONGEST_MS) if shown is not None and is_known else None
        )
        tx.record("decision.made", session.agent, session.id, {"item": item, "spent_ms": spent_ms})
        if shown is not None:
            _put(tx, item, session.agent, _ANSWERED, tx.now)

    repo.change(work)


def _put(tx: Transaction, item: str, person: str, state: str, at: int) -> None:
    document = {"id": item, "state": state, "item": item, "person": person, "at": at}
    records.put_without_entry(tx, _NOUN, document)
