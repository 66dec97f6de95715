"""Looking at a run: a live picture on a terminal, plain lines elsewhere, nothing beside JSON."""

from __future__ import annotations

import time

from landlane.cli.terminal import in_one_line
from landlane.workers.model import ALL_TAKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from landlane.cli.terminal import Terminal
    from landlane.workers.model import Glance

_WORTH_TELLING = 5.0  # seconds that something waits for one reason


class RunView:
    """Hears what happens in a run and is shown how it stands; this one says a line for what matters."""

    is_live = False

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._told: dict[str, str] = {}
        self._waits: dict[str, tuple[str, float, float]] = {}  # task → why it waits, since when, seen when

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def hear(self, task: str, told: dict[str, Any]) -> None:
        """One thing that happened."""
        line = line_of(task, told)
        if line:
            self.terminal.note(line)

    def look(self, glance: Glance) -> None:
        """How it stands now: what is new of it, and what waits for long enough to be worth a line."""
        self._once("paused", glance.paused and f"the pool is paused: {glance.paused}")
        self._once("trouble", glance.trouble and f"waiting for the store: {glance.trouble}")
        draining = "draining: nothing more begins; press Ctrl-C again to stop what runs"
        self._once("draining", draining if glance.is_draining and not glance.is_stopping else "")
        stopping = "stopping: what runs is ended, and its tasks go back into the queue"
        self._once("stopping", stopping if glance.is_stopping else "")
        now = time.monotonic()
        waits = dict(glance.waits)
        # What is tried again and again does not wait just then, and yet waits.
        self._waits = {task: one for task, one in self._waits.items() if now - one[2] < _WORTH_TELLING}
        for task, why in waits.items():
            kind = _without_numbers(why)
            before, since, _ = self._waits.get(task, ("", now, now))
            self._waits[task] = (kind, since if kind == before else now, now)
            is_worth_it = now - since >= _WORTH_TELLING and why != ALL_TAKEN
            if kind == before and is_worth_it:
                self._once(f"waits {task}", f"{task} waits: {in_one_line(why)[:300]}", kind)

    def _once(self, about: str, text: str, kind: str = "") -> None:
        """Say it unless it was said last, in this or in other numbers."""
        kind = kind or text
        if text and self._told.get(about) != kind:
            self.terminal.note(text)
        self._told[about] = kind


def _without_numbers(why: str) -> str:
    return "".join(letter for letter in why if not letter.isdigit())


def line_of(task: str, told: dict[str, Any]) -> str:
    """What happened, in a line; empty when it is not worth one."""
    event = told.get("event")
    if event == "taken":
        return f"{task} attempt {told['attempt']}: {told['agent']}"
    if event == "says" and told.get("doing") and "done" in told:
        return f"{task}: {in_one_line(str(told['doing']))[:200]}"
    if event == "stage":
        return f"{task}: {told['stage']}"
    if event == "ended" and told["outcome"] not in ("not taken", "waits"):
        why = " ".join(str(told.get("why") or "").split())
        return f"{task} {told['outcome']}" + (f": {in_one_line(why)[:300]}" if why else "")
    return ""
