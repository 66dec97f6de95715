"""The supervisor processes of a run, and when a task that could not start is tried again."""

from __future__ import annotations

import select
import signal
import time

from landlane.settings.money import micros_from
from landlane.tasks.model import AttemptOutcome
from landlane.values import as_dict, replace
from landlane.workers.model import Stage, StartRefusal, WorkerSlot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.processes.fork_server import ForkedChild, ForkServer
    from landlane.tasks.model import Task
    from landlane.workers.model import Agent, WorkOrder


TICK_SECONDS = 0.25  # also the time between two frames of a live view
RETRY_SECONDS = 2.0  # before a task that could not be taken is tried again
MAX_RETRY_SECONDS = 30.0
MAX_FAILED_STARTS = 5  # in a row
STOP_SECONDS = 20.0  # for supervisors to end their workers and return their tasks, before they are killed
_SIGNAL_SECONDS = 1.0
_KILL_SECONDS = 5.0


class SupervisorProcess:
    """A running supervisor, and what it has reported."""

    def __init__(self, child: ForkedChild, task: Task, agent: Agent) -> None:
        now = time.monotonic()
        self.child = child
        self.task = task
        self.agent = agent.name
        self.provider = agent.provider
        self.slot = WorkerSlot(
            task=task.id,
            title=task.title,
            agent=agent.name,
            tries=task.failures + 1,
            max_tries=task.max_attempts,
            stage=Stage.STARTING,
            doing="",
            started_at=now,
            heard_at=now,
            silence_seconds=agent.heartbeat_ms / 1000,
        )
        self.outcome = AttemptOutcome.KILLED  # unless it reports another
        self.result: dict[str, Any] = {}

    def apply(self, report: dict[str, Any]) -> None:
        """Update the slot from one report."""
        event = report.get("event")
        changes: dict[str, Any] = {"heard_at": time.monotonic()}
        if event == "taken":
            changes |= {"stage": Stage.PREPARING, "tries": report["tries"]}
        elif event == "started":
            changes["stage"] = Stage.WORKING
        elif event == "stage":
            changes["stage"] = Stage(report["stage"])
        elif event == "says":
            changes["doing"] = report.get("doing") or self.slot.doing
            cost = micros_of(report)
            changes["cost_micros"] = self.slot.cost_micros if cost is None else cost
        elif event == "ended":
            self.result = report
            self.outcome = AttemptOutcome(report["outcome"])
        self.slot = replace(self.slot, **changes)

    @property
    def cost_micros(self) -> int | None:
        """What the attempt cost in millionths of a US dollar, as far as it is known."""
        cost = micros_of(self.result)
        return self.slot.cost_micros if cost is None else cost


def micros_of(report: Mapping[str, Any]) -> int | None:
    """Return the cost that a report states, in millionths of a US dollar."""
    usage: Mapping[str, Any] = report.get("usage") or {}
    return micros_from(usage.get("cost_usd"))


class SupervisorPool:
    """Starts supervisors through the fork server, reads their reports and stops them."""

    def __init__(
        self, fork_server: ForkServer, on_report: Callable[[SupervisorProcess, dict[str, Any]], None]
    ) -> None:
        self._fork_server = fork_server
        self._on_report = on_report
        self.processes: list[SupervisorProcess] = []
        self._signal_at = 0.0
        self._kill_at = 0.0

    @property
    def task_ids(self) -> set[str]:
        """The tasks that have a supervisor."""
        return {process.task.id for process in self.processes}

    def start(self, task: Task, order: WorkOrder) -> None:
        """Start a supervisor for a task.

        Raises:
            OSError: the fork server does not answer.
        """
        document = {"kind": "supervise", **as_dict(order), "agent": order.agent.name}
        child = self._fork_server.begin(document)
        self.processes.append(SupervisorProcess(child, task, order.agent))

    def read_reports(self) -> list[SupervisorProcess]:
        """Read what supervisors report, and return those that have ended."""
        ended: list[SupervisorProcess] = []
        for process in list(self.processes):
            for report in process.child.read():
                process.apply(report)
                self._on_report(process, report)
            if process.child.has_ended():
                self.processes.remove(process)
                ended.append(process)
        return ended

    def wait(self) -> None:
        """Wait until a supervisor reports something, or for one tick."""
        files = [file for process in self.processes for file in process.child.readable_files]
        try:
            select.select(files, [], [], TICK_SECONDS)
        except InterruptedError:
            return

    def press(self, *, is_urgent: bool) -> None:
        """Ask all supervisors to stop; kill those that take too long, or all at once if it is urgent."""
        now = time.monotonic()
        self._kill_at = self._kill_at or now + STOP_SECONDS
        if now >= self._signal_at:  # repeatedly: a supervisor may not have reported its pid yet
            self._signal_at = now + _SIGNAL_SECONDS
            self.signal(signal.SIGTERM)
        if now >= self._kill_at or is_urgent:
            self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal to every supervisor."""
        for process in self.processes:
            process.child.signal(number)

    def kill(self) -> None:
        """Kill the supervisors that are left and wait for their end."""
        for process in self.processes:
            process.child.signal(signal.SIGKILL)
            process.child.wait(_KILL_SECONDS)
        self.processes.clear()


class StartBackoff:
    """Why tasks do not start, and when those that could not start are tried again."""

    def __init__(self, *, is_continuous: bool) -> None:
        self.refusals: dict[str, StartRefusal] = {}
        self.failed_starts = 0  # supervisors in a row that ended before they took their task
        self._is_continuous = is_continuous
        self._retry_at: dict[str, float] = {}
        self._errors: dict[str, int] = {}  # task → failures in a row

    def is_delayed(self, task_id: str) -> bool:
        """Return whether a task must wait before it is tried again."""
        return self._retry_at.get(task_id, 0.0) > time.monotonic()

    def forget_refusals(self) -> None:
        """Forget why tasks did not start, except those that are delayed."""
        self.refusals = {id: refusal for id, refusal in self.refusals.items() if self.is_delayed(id)}

    def note_attempt(self, task_id: str) -> None:
        """Note that an attempt was made."""
        self._errors.pop(task_id, None)

    def note_not_taken(self, task_id: str, why: str, *, is_error: bool) -> None:
        """Try a task again later. One that fails repeatedly with an error is given up by a run that ends."""
        count = self._errors.get(task_id, 0) + 1 if is_error else 0
        self._errors[task_id] = count
        is_permanent = count >= MAX_FAILED_STARTS and not self._is_continuous
        pause = min(RETRY_SECONDS * 2 ** max(count - 1, 0), MAX_RETRY_SECONDS)
        self._retry_at[task_id] = float("inf") if is_permanent else time.monotonic() + pause
        self.refusals[task_id] = StartRefusal(why=why, is_permanent=is_permanent)

    def note_failed_start(self, task_id: str, why: str) -> str:
        """Note that a supervisor did not start; return why the run must stop after too many of them."""
        self.failed_starts += 1
        self._retry_at[task_id] = time.monotonic() + RETRY_SECONDS * self.failed_starts
        self.refusals[task_id] = StartRefusal(why=why, is_permanent=False)
        if not self.has_too_many_failed_starts:
            return ""
        return f"{self.failed_starts} times in a row {why}"

    @property
    def has_too_many_failed_starts(self) -> bool:
        """Whether starting supervisors seems to be broken."""
        return self.failed_starts >= MAX_FAILED_STARTS
