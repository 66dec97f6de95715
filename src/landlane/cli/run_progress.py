"""Views of a run: live on a terminal, plain lines elsewhere, none with --json."""

from __future__ import annotations

import time

from landlane.cli.terminal import in_one_line
from landlane.workers.model import ALL_SLOTS_TAKEN, WITHOUT_ATTEMPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from landlane.cli.terminal import Terminal
    from landlane.workers.model import RunStatus

_MIN_WAIT_SECONDS = 5.0  # before it is printed why a task waits


class RunView:
    """Prints a line for each event that matters."""

    is_live = False

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._printed: dict[str, str] = {}
        self._waits: dict[str, tuple[str, float, float]] = {}  # task → why it waits, since when, seen when

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def on_event(self, task: str, event: dict[str, Any]) -> None:
        """Show one event."""
        line = line_of(task, event)
        if line:
            self.terminal.note(line)

    def on_status(self, status: RunStatus) -> None:
        """Print what is new in the status, and tasks that have waited for a while."""
        self._once("paused", status.paused and f"the pool is paused: {status.paused}")
        self._once("trouble", status.trouble and f"waiting for the store: {status.trouble}")
        draining = "draining: nothing more begins; press Ctrl-C again to stop what runs"
        self._once("draining", draining if status.is_draining and not status.is_stopping else "")
        stopping = "stopping: what runs is ended, and its tasks go back into the queue"
        self._once("stopping", stopping if status.is_stopping else "")
        now = time.monotonic()
        waits = dict(status.refusals)
        # A task that is being tried again counts as still waiting.
        self._waits = {task: one for task, one in self._waits.items() if now - one[2] < _MIN_WAIT_SECONDS}
        for task, why in waits.items():
            kind = _without_numbers(why)
            before, since, _ = self._waits.get(task, ("", now, now))
            self._waits[task] = (kind, since if kind == before else now, now)
            is_worth_it = now - since >= _MIN_WAIT_SECONDS and why != ALL_SLOTS_TAKEN
            if kind == before and is_worth_it:
                self._once(f"waits {task}", f"{task} waits: {in_one_line(why)[:300]}", kind)

    def _once(self, about: str, text: str, kind: str = "") -> None:
        """Print a text unless it was printed last, apart from its numbers."""
        kind = kind or text
        if text and self._printed.get(about) != kind:
            self.terminal.note(text)
        self._printed[about] = kind


def _without_numbers(why: str) -> str:
    return "".join(letter for letter in why if not letter.isdigit())


def line_of(task: str, report: dict[str, Any]) -> str:
    """Return an event as one line; empty if it is not worth one."""
    event = report.get("event")
    if event == "taken":
        return f"{task} attempt {report['attempt']}: {report['agent']}"
    if event == "says" and report.get("doing") and "done" in report:
        return f"{task}: {in_one_line(str(report['doing']))[:200]}"
    if event == "stage":
        return f"{task}: {report['stage']}"
    if event == "ended" and report["outcome"] not in WITHOUT_ATTEMPT:
        why = " ".join(str(report.get("why") or "").split())
        return f"{task} {report['outcome']}" + (f": {in_one_line(why)[:300]}" if why else "")
    return ""
