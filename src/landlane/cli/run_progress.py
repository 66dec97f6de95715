"""Views of a run: live on a terminal, plain lines elsewhere, none with --json."""

from __future__ import annotations

import time

from landlane.cli.terminal import in_one_line
from landlane.workers.model import ALL_TAKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from landlane.cli.terminal import Terminal
    from landlane.workers.model import Glance

_LONG_WAIT_SECONDS = 5.0  # before a wait for one reason is reported


class RunView:
    """Receives the events and the state of a run; this view prints a line for the important ones."""

    is_live = False

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._last_notes: dict[str, str] = {}
        self._waits: dict[str, tuple[str, float, float]] = {}  # task → reason, since, last seen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def hear(self, task: str, event: dict[str, Any]) -> None:
        """Handle one event of a task."""
        line = line_of(task, event)
        if line:
            self.terminal.note(line)

    def look(self, glance: Glance) -> None:
        """Print what is new in the state of the run, and tasks that have waited for several seconds."""
        self._once("paused", glance.paused and f"the pool is paused: {glance.paused}")
        self._once("trouble", glance.trouble and f"waiting for the store: {glance.trouble}")
        draining = "draining: nothing more begins; press Ctrl-C again to stop what runs"
        self._once("draining", draining if glance.is_draining and not glance.is_stopping else "")
        stopping = "stopping: what runs is ended, and its tasks go back into the queue"
        self._once("stopping", stopping if glance.is_stopping else "")
        now = time.monotonic()
        waits = dict(glance.waits)
        # A task that is retried all the time counts as waiting between its tries, too.
        self._waits = {task: wait for task, wait in self._waits.items() if now - wait[2] < _LONG_WAIT_SECONDS}
        for task, why in waits.items():
            kind = _without_numbers(why)
            before, since, _ = self._waits.get(task, ("", now, now))
            self._waits[task] = (kind, since if kind == before else now, now)
            is_worth_it = now - since >= _LONG_WAIT_SECONDS and why != ALL_TAKEN
            if kind == before and is_worth_it:
                self._once(f"waits {task}", f"{task} waits: {in_one_line(why)[:300]}", kind)

    def _once(self, about: str, text: str, kind: str = "") -> None:
        """Print the text unless it was the last one about this topic; changed numbers do not count."""
        kind = kind or text
        if text and self._last_notes.get(about) != kind:
            self.terminal.note(text)
        self._last_notes[about] = kind


def _without_numbers(why: str) -> str:
    return "".join(letter for letter in why if not letter.isdigit())


def line_of(task: str, event: dict[str, Any]) -> str:
    """Return an event as a line; empty when it is not important enough."""
    kind = event.get("event")
    if kind == "taken":
        return f"{task} attempt {event['attempt']}: {event['agent']}"
    if kind == "says" and event.get("doing") and "done" in event:
        return f"{task}: {in_one_line(str(event['doing']))[:200]}"
    if kind == "stage":
        return f"{task}: {event['stage']}"
    if kind == "ended" and event["outcome"] not in ("not taken", "waits"):
        why = " ".join(str(event.get("why") or "").split())
        return f"{task} {event['outcome']}" + (f": {in_one_line(why)[:300]}" if why else "")
    return ""
