"""Notices: what a session must hear of, kept until it was told, and told once.

What a session that ended was not told, the next one of the same agent hears.
"""

from __future__ import annotations

from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Context
    from landlane.store.interface import Change, Reading

_NOUN = "notice"
_MOST = 20


def add_notice(tx: Change, session: str, text: str) -> None:
    """Leave word for a session; for the newest one of its agent, if it is over."""
    row = tx.one("session_get", session=session)
    if row is not None and row[12] is not None:
        newest = tx.one("session_latest", agent=row[1])
        session = newest[0] if newest is not None else session
    document = {"id": records.next_id(tx, _NOUN), "state": "new", "session": session, "text": text[:1000]}
    records.put(tx, _NOUN, document, "left")


def has_notices(reading: Reading, session: str) -> list[records.Document]:
    """What a session has not been told yet."""
    return records.by_key(reading, _NOUN, session, "new")


def inherit_in(tx: Change, before: str, session: str) -> None:
    """An agent is back: what its last session was not told any more is for this one."""
    for one in has_notices(tx, before):
        locked = records.lock(tx, _NOUN, one["id"])
        if locked is not None and locked["state"] == "new":
            records.put(tx, _NOUN, {**locked, "session": session}, "passed")


def take_notices(context: Context, session: str) -> list[str]:
    """What a session must hear of now; it is told once."""
    waiting = context.store.view(lambda reading: has_notices(reading, session))
    if not waiting:
        return []

    def work(tx: Change) -> list[str]:
        told: list[str] = []
        for one in has_notices(tx, session)[:_MOST]:
            locked = records.lock(tx, _NOUN, one["id"])
            if locked is not None and locked["state"] == "new":
                records.put(tx, _NOUN, {**locked, "state": "told"}, "told")
                told.append(str(locked["text"]))
        return told

    return context.change(work)
