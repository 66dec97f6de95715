"""What is known of a running client so far: usage, last text, current tool, errors.

Usage is counted once: each answer of the model has a key, and the newest word about a key holds. What the
client says of the whole takes the place of all parts before it.
"""

from __future__ import annotations

from landlane.clients.worker_adapter import CALL, CALL_ENDED, ERROR, MORE, RETRY, SAID, SPENT, TEXT, clean
from landlane.protocol.worker.messages import Usage
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.clients.worker_adapter import OutputEvent

_MOST_TEXT = 8_000
_MOST_CALLS = 1_000


class RunProgress:
    """Kept by hearing events, each with the instant it came at, in seconds."""

    def __init__(self) -> None:
        self.last_text = ""
        self.error: OutputEvent | None = None
        self.retry: OutputEvent | None = None
        self.retrying_since: float | None = None
        self.calls: dict[str, float] = {}  # tool calls that are under way, and since when
        self._is_in_text = False
        self._parts: dict[str, Usage] = {}
        self._whole: Usage | None = None

    @property
    def failure(self) -> OutputEvent | None:
        """What the client could not mend by itself."""
        return self.error or self.retry

    def hear(self, event: OutputEvent, now: float) -> str:
        """Take an event in; tells what a person may want to see of it."""
        event = replace(event, text=clean(event.text))
        if event.kind == SPENT:
            self._spend(event)
            return ""
        if event.kind == RETRY:
            self.retry = event
            if self.retrying_since is None:
                self.retrying_since = now
            return event.text
        if event.kind == ERROR:
            self.error = event
            return event.text
        if event.kind != SAID:
            self._go_on()
        if event.kind in (TEXT, SAID):
            return self._take_text(event)
        self._is_in_text = False
        if event.kind == CALL and len(self.calls) < _MOST_CALLS:
            self.calls[event.call] = now
        elif event.kind == CALL_ENDED:
            self.calls.pop(event.call, None)
        return event.text

    def _take_text(self, event: OutputEvent) -> str:
        before = self.last_text if event.is_more and self._is_in_text else ""
        self.last_text = f"{before}{event.text}"[-_MOST_TEXT:]
        self._is_in_text = event.is_more
        return "" if event.is_more and event.kind == SAID else event.text  # lines of an answer, one by one

    def _go_on(self) -> None:
        """The model has answered: what failed before was mended by the client itself."""
        self.error = self.retry = self.retrying_since = None

    def _spend(self, event: OutputEvent) -> None:
        if event.usage is None:
            return
        if event.usage.output_tokens:
            self._go_on()
        if event.key:
            key = event.key if event.key != MORE else f"{MORE}{len(self._parts)}"
            self._parts[key] = event.usage
            self._is_in_text = self._is_in_text and event.key != MORE  # that answer is over
        else:
            self._whole = event.usage
            self._parts.clear()  # they are in it; what comes later is not

    @property
    def usage(self) -> Usage | None:
        """All that was used so far; nothing when the client has told nothing."""
        told = [*([self._whole] if self._whole else []), *self._parts.values()]
        if not told:
            return None
        return Usage(
            input_tokens=_sum([one.input_tokens for one in told]),
            output_tokens=_sum([one.output_tokens for one in told]),
            cost_usd=_sum([one.cost_usd for one in told]),
        )


def _sum(found: list[Any]) -> Any:
    """The sum of what is known; nothing when none of it is."""
    known = [one for one in found if one is not None]
    return sum(known) if known else None
