"""Live updates: server-sent events with the number of a journal entry as id; a reconnect misses nothing."""

from __future__ import annotations

import asyncio
import json
import threading
import time

from landlane.clock import rfc3339
from landlane.errors import LandlaneError
from landlane.inbox.items import list_items
from landlane.journal.read import last_position
from landlane.journal.sentences import entry_sentence, is_for_people
from landlane.sessions.model import OWN_NAME
from landlane.tasks.records import task_titles
from landlane.text import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Any

    from landlane.store.journal_chain import JournalEntry
    from landlane.web.source import Source

_POLL_SECONDS = 1.0
_PING_SECONDS = 15.0
_MOST_REPLAYED = 20_000  # entries; a reader that missed more loads the page again
_PAGE = 500
_MOST_READERS = 100


class Feed:
    """Follows the journal in a thread of its own, and wakes the readers of the streams."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._is_over = False
        self._guard = threading.Lock()
        self._readers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self.position = 0

    def start(self) -> None:
        """Begin to follow."""
        self.position = last_position(self._source.repo)
        threading.Thread(target=self._follow, daemon=True).start()

    def stop(self) -> None:
        """End, and wake everybody for the last time."""
        self._is_over = True
        self._wake()

    def _follow(self) -> None:
        listener = self._source.repo.store.listen()
        try:
            while not self._is_over:
                listener.wait(_POLL_SECONDS)
                try:
                    position = last_position(self._source.repo)
                except (LandlaneError, OSError):
                    continue  # the store is busy or gone for a moment
                if position != self.position:
                    self.position = position
                    self._wake()
        finally:
            listener.close()

    def _wake(self) -> None:
        with self._guard:
            readers = list(self._readers.items())
        for event, loop in readers:
            loop.call_soon_threadsafe(event.set)

    @property
    def is_full(self) -> bool:
        """Return whether there are as many readers as are allowed."""
        return len(self._readers) >= _MOST_READERS

    async def stream(
        self, after: int, person: str, only_needs: bool, is_signed_in: Callable[[], bool]
    ) -> AsyncIterator[str]:
        """Yield the entries behind a position as events, then new ones as they come, until it signs out."""
        event = asyncio.Event()
        with self._guard:
            self._readers[event] = asyncio.get_running_loop()
        try:
            sent = after if 0 < after <= self.position else self.position
            yield _event("hello", {"position": self.position}, sent)
            needs = ""
            if self.position - sent > _MOST_REPLAYED:
                sent = self.position
                yield _event("reset", {"position": sent}, sent)
            while not self._is_over and is_signed_in():
                event.clear()
                while sent < self.position:
                    entries, texts = await asyncio.to_thread(self._read, sent)
                    if not entries:
                        break
                    sent = entries[-1].position
                    if not only_needs:
                        yield "".join(texts)
                if only_needs:
                    found = await asyncio.to_thread(self._needs, person)
                    if found != needs:
                        needs = found
                        yield f"id: {sent}\nevent: needs\ndata: {needs}\n\n"
                try:
                    await asyncio.wait_for(event.wait(), _PING_SECONDS)
                except TimeoutError:
                    yield f": {int(time.time())}\n\n"
        finally:
            with self._guard:
                self._readers.pop(event, None)

    def _read(self, after: int) -> tuple[Sequence[JournalEntry], list[str]]:
        repo = self._source.repo
        entries = repo.store.entries(after, _PAGE)
        titles = task_titles(repo, [str(entry.facts().get("task") or "") for entry in entries])
        return entries, [_entry_event(entry, titles) for entry in entries]

    def _needs(self, person: str) -> str:
        items = list_items(self._source.repo, person)
        return json.dumps([{"id": item["id"], "what": in_one_line(item["what"])} for item in items])


def _entry_event(entry: JournalEntry, titles: dict[str, str]) -> str:
    facts: dict[str, Any] = {
        "at": rfc3339(entry.at),
        "kind": entry.kind,
        "agent": entry.agent or OWN_NAME,
        "text": in_one_line(entry_sentence(entry, titles)),
        "is_shown": is_for_people(entry),
    }
    return _event("entry", facts, entry.position)


def _event(name: str, facts: dict[str, Any], position: int) -> str:
    return f"id: {position}\nevent: {name}\ndata: {json.dumps(facts)}\n\n"
