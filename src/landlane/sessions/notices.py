"""Messages for a session, each delivered once.

A message that a session did not get before it ended goes to the next session of the same agent. Items of a
list (`take_undelivered`) are not journaled: after a rebuild of the store they may be delivered a second time.
"""

from __future__ import annotations

from landlane.sessions.leases import find_latest_session, find_session
from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction

_NOTICE = "notice"
_NEW, _DELIVERED = "new", "told"
_MOST_NOTICES = 20
_ITEMS = "told"
_MOST_ITEMS = 1000


def add_notice(tx: Transaction, session: str, text: str) -> None:
    """Leave a message for a session, or for the newest session of its agent if it has ended."""
    known = find_session(tx, session)
    if known is not None and known.has_ended:
        newest = find_latest_session(tx, known.agent)
        session = newest.id if newest is not None else session
    document = {"id": records.next_id(tx, _NOTICE), "state": _NEW, "session": session, "text": text[:1000]}
    records.put(tx, _NOTICE, document, "left")


def list_unread(snapshot: Snapshot, session: str) -> list[records.Document]:
    """Return the messages that a session has not received yet."""
    return records.find_by_key(snapshot, _NOTICE, session, _NEW)


def pass_on_unread(tx: Transaction, former: str, session: str) -> None:
    """Give the unread messages of an agent's former session to its new one."""
    _change_unread(tx, list_unread(tx, former), "passed", session=session)


def take_notices(repo: Repository, session: str) -> list[str]:
    """Return the unread messages of a session and record them as delivered."""
    if not repo.store.view(lambda snapshot: list_unread(snapshot, session)):
        return []

    def work(tx: Transaction) -> list[str]:
        unread = list_unread(tx, session)[:_MOST_NOTICES]
        return [str(notice["text"]) for notice in _change_unread(tx, unread, "told", state=_DELIVERED)]

    return repo.change(work)


def _change_unread(
    tx: Transaction, notices: Sequence[records.Document], verb: str, **changes: str
) -> list[records.Document]:
    """Change messages, except those that another session received meanwhile; return the changed ones."""
    locked = (records.lock(tx, _NOTICE, notice["id"]) for notice in notices)
    unread = [notice for notice in locked if notice is not None and notice["state"] == _NEW]
    for notice in unread:
        records.put(tx, _NOTICE, {**notice, **changes}, verb)
    return unread


def take_undelivered(repo: Repository, session: str, subject: str, items: Sequence[str]) -> list[str]:
    """Return the items never delivered about this subject, and record them as delivered."""
    known = repo.store.view(lambda snapshot: records.find(snapshot, _ITEMS, subject))
    if set(known["items"] if known is not None else ()).issuperset(items):
        return []

    def work(tx: Transaction) -> list[str]:
        known = records.lock(tx, _ITEMS, subject)
        before: list[str] = known["items"] if known is not None else []
        new = [item for item in dict.fromkeys(items) if item not in set(before)]
        kept = [*before, *new][-_MOST_ITEMS:]
        document = {"id": subject, "state": _DELIVERED, "session": session, "items": kept}
        records.put_without_entry(tx, _ITEMS, document)
        return new

    return repo.store.change(work, areas={f"//told:{subject}": True}, is_durable=False)
