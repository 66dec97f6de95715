"""What is known about a running client so far: usage, last text, running tool calls, errors.

Usage is counted once: each answer of the model has a key, and the newest report for a key counts. A report
for the whole run replaces all parts before it.
"""

from __future__ import annotations

from landlane.clients.worker_adapter import OutputEvent, OutputKind, add_usage, printable
from landlane.protocol.worker.messages import Usage
from landlane.values import replace

_MOST_TEXT = 8_000
_MOST_CALLS = 1_000


class RunProgress:
    """Updated with each event and the instant it came at, in seconds."""

    def __init__(self) -> None:
        self.last_text = ""
        self.error: OutputEvent | None = None
        self.retry: OutputEvent | None = None
        self.retrying_since: float | None = None
        self.calls: dict[str, float] = {}  # running tool calls, and since when
        self._is_in_text = False
        self._parts: dict[str, Usage] = {}
        self._whole: Usage | None = None

    @property
    def failure(self) -> OutputEvent | None:
        """The error or the retry from which the client has not recovered."""
        return self.error or self.retry

    @property
    def usage(self) -> Usage | None:
        """All usage so far; None when the client has reported none."""
        parts = [*([self._whole] if self._whole else []), *self._parts.values()]
        return add_usage(parts) if parts else None

    def update(self, event: OutputEvent, now: float) -> str:
        """Take an event into account, and return the text to show for it."""
        event = replace(event, text=printable(event.text))
        if event.kind == OutputKind.USAGE:
            self._count(event)
            return ""
        if event.kind == OutputKind.RETRY:
            self.retry = event
            if self.retrying_since is None:
                self.retrying_since = now
            return event.text
        if event.kind == OutputKind.ERROR:
            self.error = event
            return event.text
        if event.kind != OutputKind.PRINTED:
            self._recover()
        if event.kind in (OutputKind.TEXT, OutputKind.PRINTED):
            return self._take_text(event)
        self._is_in_text = False
        if event.kind == OutputKind.CALL and len(self.calls) < _MOST_CALLS:
            self.calls[event.call] = now
        elif event.kind == OutputKind.CALL_ENDED:
            self.calls.pop(event.call, None)
        return event.text

    def _take_text(self, event: OutputEvent) -> str:
        before = self.last_text if event.is_more and self._is_in_text else ""
        self.last_text = f"{before}{event.text}"[-_MOST_TEXT:]
        self._is_in_text = event.is_more
        # The single lines of an answer are not shown one by one.
        return "" if event.is_more and event.kind == OutputKind.PRINTED else event.text

    def _recover(self) -> None:
        """The model has answered, so the client has recovered from what failed before."""
        self.error = self.retry = self.retrying_since = None

    def _count(self, event: OutputEvent) -> None:
        if event.usage is None:
            return
        if event.usage.output_tokens:
            self._recover()
        if event.is_added:
            self._parts[f"+{len(self._parts)}"] = event.usage
            self._is_in_text = False  # that answer is over
        elif event.key:
            self._parts[event.key] = event.usage
        else:
            self._whole = event.usage
            self._parts.clear()  # they are in it; later ones are not
