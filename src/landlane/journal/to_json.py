"""Journal entries as JSON."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.journal.sentences import entry_sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.journal.json_types import EntryJson, SentenceEntryJson
    from landlane.store.journal_chain import JournalEntry


def entry_json(entry: JournalEntry) -> EntryJson:
    """Return an entry as JSON."""
    return {
        "position": entry.position,
        "at": rfc3339(entry.at),
        "kind": entry.kind,
        "agent": entry.agent,
        "session": entry.session,
        "data": entry.facts(),
        "hash": entry.hash,
    }


def sentence_entry_json(entry: JournalEntry, titles: Mapping[str, str]) -> SentenceEntryJson:
    """Return an entry as JSON, also as a sentence with the titles of tasks."""
    return {**entry_json(entry), "text": entry_sentence(entry, titles)}
