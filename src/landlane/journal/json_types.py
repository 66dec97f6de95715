"""The types of journal entries in JSON answers."""

from __future__ import annotations

from typing import Any, TypedDict

from landlane.json_time import Time


class EntryJson(TypedDict):
    """An entry of the journal; `kind` decides what is in `data`."""

    position: int
    at: Time
    kind: str
    agent: str
    session: str
    data: dict[str, Any]
    hash: str


class SentenceEntryJson(EntryJson):
    """An entry of the journal, also as a sentence."""

    text: str
