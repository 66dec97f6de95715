"""Telling once: which of some things a session has not heard of yet; with the asking, they count as told.

Like a sign of life this is not journaled: after a rebuild somebody may hear something once more.
"""

from __future__ import annotations

from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.context import Context
    from landlane.store.interface import Change, Reading

_NOUN = "told"
_MOST = 1000


def told_in(reading: Reading, subject: str) -> set[str]:
    """What was told about a subject before."""
    found = records.find(reading, _NOUN, subject)
    return set(found["items"]) if found is not None else set()


def take_untold(context: Context, session: str, subject: str, items: Sequence[str]) -> list[str]:
    """Those of these things that were never told about this subject; they are told now."""
    told = context.store.view(lambda reading: told_in(reading, subject))
    if told.issuperset(items):
        return []

    def work(tx: Change) -> list[str]:
        known = records.lock(tx, _NOUN, subject)
        before: list[str] = known["items"] if known is not None else []
        new = [item for item in dict.fromkeys(items) if item not in set(before)]
        document = {"id": subject, "state": "told", "session": session, "items": [*before, *new][-_MOST:]}
        records.put_quietly(tx, _NOUN, document)
        return new

    return context.store.change(work, areas={f"//told:{subject}": True}, is_durable=False)
