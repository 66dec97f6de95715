"""The running supervisors of a run: start them, read their reports."""

from __future__ import annotations

import select
import signal
import time

from landlane.values import replace
from landlane.workers.admit import Refusal
from landlane.workers.model import STARTING, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.processes.fork_server import ForkedChild
    from landlane.tasks.model import Task
    from landlane.workers.model import RunWish


TICK_SECONDS = 0.2
AGAIN_SECONDS = 2.0  # before a task is tried once more that could not be had
LONGEST_PAUSE = 30.0
MOST_BROKEN = 5  # keepers in a row that did not even begin
STOP_SECONDS = 20.0  # for keepers to end their workers and hand back, before they are killed
_PRESS_SECONDS = 1.0


class Crew:
    """The children of an orchestrator, and what became of them."""

    def __init__(self, wish: RunWish, on_event: Callable[[str, dict[str, Any]], None]) -> None:
        self._wish = wish
        self._on_event = on_event
        self._kept: list[Kept] = []
        self._lander: ForkedChild | None = None
        self._broken_starts = 0
        self._not_before: dict[str, float] = {}  # tasks that could not be had just now
        self._vain: dict[str, int] = {}  # tasks that could not be begun, and how often in a row
        self._refusals: dict[str, Refusal] = {}
        self._attempts = 0
        self._cost_usd = 0.0
        self._unknown_costs = 0
        self._look_at = 0.0
        self._upkeep_at = 0.0
        self._paused = ""
        self._kill_at = 0.0
        self._press_at = 0.0
        self._is_hurried = False
        self.is_draining = False
        self.is_stopping = False

    def drain(self) -> None:
        """Begin nothing more, and end when what runs has ended."""
        self.is_draining = True

    def stop(self) -> None:
        """End what runs now; the tasks go back into the queue, and what was made is saved.

        Asked once more, it waits no longer for keepers that end their workers.
        """
        self._is_hurried = self.is_stopping
        self.is_draining = self.is_stopping = True

    def _press(self) -> None:
        """Have the keepers end their workers; kill those that take too long."""
        now = time.monotonic()
        self._kill_at = self._kill_at or now + STOP_SECONDS
        if now >= self._press_at:  # again: one may not have told yet who it is
            self._press_at = now + _PRESS_SECONDS
            self._signal(signal.SIGTERM)
        if now >= self._kill_at or self._is_hurried:
            self._signal(signal.SIGKILL)

    def _rest(self) -> None:
        """Until a keeper says something, or for a moment."""
        files = [file for one in self._kept for file in one.fork.readable_files]
        try:
            select.select(files, [], [], TICK_SECONDS)
        except InterruptedError:
            return

    def _reap(self) -> None:
        """Hear what keepers tell, and bury those that have ended."""
        for one in list(self._kept):
            for told in one.fork.read():
                one.hear(told)
                self._on_event(one.task.id, told)
            if one.fork.has_ended():
                self._kept.remove(one)
                self._look_at = 0.0
                self._ended(one)
        if self._lander is not None:
            self._lander.read()
            if self._lander.has_ended():
                self._lander = None

    def _ended(self, one: Kept) -> None:
        outcome = str(one.outcome.get("outcome", "")) or "killed"
        if outcome == "killed" and one.place.stage == STARTING:
            self._broken(one)
            return
        self._broken_starts = 0
        if outcome in ("not taken", "waits"):
            self._not_had(one)
            return
        self._vain.pop(one.task.id, None)
        self._attempts += 1
        usage: dict[str, Any] = one.outcome.get("usage") or {}
        cost: float | None = usage.get("cost_usd", one.place.cost_usd)
        if cost is None:
            self._unknown_costs += 1
        else:
            self._cost_usd += cost
        if outcome == "killed":
            self._upkeep_at = 0.0  # clear up after it at once
            self._on_event(
                one.task.id, {"event": "ended", "outcome": "killed", "why": "its keeper was killed"}
            )

    def _not_had(self, one: Kept) -> None:
        """It could not be had just now; what fails again and again for one reason is not waited for."""
        task_id = one.task.id
        is_error = bool(one.outcome.get("code"))
        count = self._vain.get(task_id, 0) + 1 if is_error else 0
        self._vain[task_id] = count
        is_for_good = count >= MOST_BROKEN and not self._wish.is_standing
        pause = min(AGAIN_SECONDS * 2 ** max(count - 1, 0), LONGEST_PAUSE)
        self._not_before[task_id] = float("inf") if is_for_good else time.monotonic() + pause
        self._refusals[task_id] = Refusal(why=str(one.outcome.get("why", "")), is_for_good=is_for_good)

    def _broken(self, one: Kept) -> None:
        """A keeper ended without having begun, as far as is known: it may have taken its task."""
        self._upkeep_at = 0.0
        self._cannot_begin(one.task, "the process that should look after it ended at once")

    def _cannot_begin(self, task: Task, why: str) -> None:
        """Something of ours is broken, and trying on for long mends nothing."""
        self._broken_starts += 1
        self._not_before[task.id] = time.monotonic() + AGAIN_SECONDS * self._broken_starts
        self._refusals[task.id] = Refusal(why=why, is_for_good=False)
        if self._broken_starts >= MOST_BROKEN:
            self._paused = f"{self._broken_starts} times in a row {why}"
            self.is_draining = True

    def _signal(self, number: int) -> None:
        for one in self._kept:
            one.fork.signal(number)


class Kept:
    """A keeper that runs, and what it told."""

    def __init__(self, forked: ForkedChild, task: Task, kind: str) -> None:
        now = time.monotonic()
        self.fork = forked
        self.task = task
        self.kind = kind  # the agent's name
        self.place = Place(
            task=task.id,
            title=task.title,
            agent=kind,
            attempt=task.attempt + 1,
            stage=STARTING,
            doing="",
            since=now,
            heard=now,
        )
        self.outcome: dict[str, Any] = {}

    def hear(self, told: dict[str, Any]) -> None:
        """Take in what the keeper tells."""
        event = told.get("event")
        changes: dict[str, Any] = {"heard": time.monotonic()}
        if event == "taken":
            changes |= {"stage": "preparing", "agent": told["agent"], "attempt": told["attempt"]}
        elif event == "started":
            changes["stage"] = "working"
        elif event == "stage":
            changes["stage"] = told["stage"]
        elif event == "says":
            usage: dict[str, Any] = told.get("usage") or {}
            changes["doing"] = told.get("doing") or self.place.doing
            if usage.get("cost_usd") is not None:
                changes["cost_usd"] = usage["cost_usd"]
        elif event == "ended":
            self.outcome = told
        self.place = replace(self.place, **changes)
