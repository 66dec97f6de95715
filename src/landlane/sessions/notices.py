"""Messages for a session, each delivered once.

A message that a session did not get before it ended goes to the next session of the same agent. Items of a
list (`take_untold`) are not journaled: after a rebuild of the store they may be delivered a second time.
"""

from __future__ import annotations

from landlane.sessions.read import find_latest_session, find_session
from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction

_NOUN = "notice"
_MOST = 20
_TOLD = "told"
_MOST_TOLD = 1000


def add_notice(tx: Transaction, session: str, text: str) -> None:
    """Leave word for a session; for the newest one of its agent, if it is over."""
    known = find_session(tx, session)
    if known is not None and known.has_ended:
        newest = find_latest_session(tx, known.agent)
        session = newest.id if newest is not None else session
    document = {"id": records.next_id(tx, _NOUN), "state": "new", "session": session, "text": text[:1000]}
    records.put(tx, _NOUN, document, "left")


def has_notices(snapshot: Snapshot, session: str) -> list[records.Document]:
    """What a session has not been told yet."""
    return records.by_key(snapshot, _NOUN, session, "new")


def inherit_in(tx: Transaction, before: str, session: str) -> None:
    """An agent is back: what its last session was not told any more is for this one."""
    for one in has_notices(tx, before):
        locked = records.lock(tx, _NOUN, one["id"])
        if locked is not None and locked["state"] == "new":
            records.put(tx, _NOUN, {**locked, "session": session}, "passed")


def take_notices(repo: Repository, session: str) -> list[str]:
    """What a session must hear of now; it is told once."""
    waiting = repo.store.view(lambda snapshot: has_notices(snapshot, session))
    if not waiting:
        return []

    def work(tx: Transaction) -> list[str]:
        told: list[str] = []
        for one in has_notices(tx, session)[:_MOST]:
            locked = records.lock(tx, _NOUN, one["id"])
            if locked is not None and locked["state"] == "new":
                records.put(tx, _NOUN, {**locked, "state": "told"}, "told")
                told.append(str(locked["text"]))
        return told

    return repo.change(work)


def told_in(snapshot: Snapshot, subject: str) -> set[str]:
    """Return the items that were delivered about a subject before."""
    found = records.find(snapshot, _TOLD, subject)
    return set(found["items"]) if found is not None else set()


def take_untold(repo: Repository, session: str, subject: str, items: Sequence[str]) -> list[str]:
    """Return the items never delivered about this subject, and record them as delivered."""
    told = repo.store.view(lambda snapshot: told_in(snapshot, subject))
    if told.issuperset(items):
        return []

    def work(tx: Transaction) -> list[str]:
        known = records.lock(tx, _TOLD, subject)
        before: list[str] = known["items"] if known is not None else []
        new = [item for item in dict.fromkeys(items) if item not in set(before)]
        document = {
            "id": subject,
            "state": "told",
            "session": session,
            "items": [*before, *new][-_MOST_TOLD:],
        }
        records.put_quietly(tx, _TOLD, document)
        return new

    return repo.store.change(work, areas={f"//told:{subject}": True}, is_durable=False)
