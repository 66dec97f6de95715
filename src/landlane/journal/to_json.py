"""Journal entries as JSON."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.journal.sentences import entry_sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.store.journal_chain import Entry


def entry_json(entry: Entry, titles: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return an entry as JSON; with the titles of tasks, also as a sentence."""
    sentence = {} if titles is None else {"text": entry_sentence(entry, titles)}
    return {
        "position": entry.position,
        "at": rfc3339(entry.at),
        "kind": entry.kind,
        "agent": entry.agent,
        "session": entry.session,
        "data": entry.facts(),
        "hash": entry.hash,
        **sentence,
    }
