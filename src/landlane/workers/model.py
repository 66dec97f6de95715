"""Runs and attempts as values: the request, worker slots, outcomes, status and summary."""

from __future__ import annotations

from enum import StrEnum

from landlane.landing.model import HELD
from landlane.tasks.model import BLOCKED, DEAD, DONE, FAILED, FINISHED, IN_PROGRESS, READY, WAITING
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.landing.model import Landing
    from landlane.tasks.model import Task

COMMAND = "command"  # the client of an agent that is not a coding client
EXIT, MESSAGES = "exit", "messages"  # the protocols of commands
ALL_SLOTS_TAKEN = "all places are taken"


class Stage(StrEnum):
    """What an attempt is doing."""

    STARTING = "starting"  # the supervisor has not taken its task yet
    PREPARING = "preparing"
    WORKING = "working"
    COLLECTING = "handing in"
    VERIFYING = "proving"
    SUBMITTING = "submitting"


class Outcome(StrEnum):
    """What became of an attempt."""

    NOT_TAKEN = "not taken"  # another session has the task, or a path it changes
    NOT_STARTED = "waits"  # something it needs is not available now
    DONE = "done"
    LANDING = "landing"
    REVIEW = "review"
    WAITING = "waiting"  # for a person
    RETRY = "retry"
    ESCALATE = "escalate"
    ABORT = "abort"
    RETURNED = "returned"  # back to the queue, and not counted as an attempt
    LOST = "lost"  # the task belongs to another session now
    KILLED = "killed"


WITHOUT_ATTEMPT = (Outcome.NOT_TAKEN, Outcome.NOT_STARTED)


@value
class Agent:
    """One kind of worker: a coding client, or a command with the protocol by which it reports."""

    name: str
    client: str = COMMAND
    command: tuple[str, ...] = ()
    protocol: str = EXIT
    model: str = ""
    words: tuple[str, ...] = ()
    role: str = ""
    needs: tuple[tuple[str, int], ...] = ()
    most: int = 0  # attempts of this agent at once; 0: as many as there are worker slots
    heartbeat_ms: int = 60_000
    limit_ms: int = 0


@value
class RunRequest:
    """What to run: these tasks, or all that are ready. With `is_continuous`, wait for more tasks forever.

    `command` is a plain command that does the tasks that name no agent.
    """

    workers: int
    tasks: frozenset[str] = frozenset()
    agent: str = ""
    command: tuple[str, ...] = ()
    until_empty: bool = False
    is_continuous: bool = False
    is_offline: bool = False


@value
class WorkOrder:
    """One attempt for a supervisor to make; `orchestrator` names the process that ordered it."""

    task: str
    agent: Agent
    role: str
    orchestrator: str = ""
    is_offline: bool = False


@value
class AttemptResult:
    """The outcome of an attempt. `keeps_workspace` is set while its change may still have to be fixed."""

    outcome: Outcome
    why: str = ""
    code: str = ""
    head: str = ""
    usage: dict[str, Any] | None = None
    keeps_workspace: bool = False

    def to_report(self) -> dict[str, Any]:
        """Return the fields that the orchestrator reads."""
        fields = as_dict(self)
        del fields["keeps_workspace"]
        return fields


class StopRequest:
    """Why a supervisor was asked to stop; empty until then."""

    def __init__(self) -> None:
        self.why = ""


@value
class StartRefusal:
    """Why a task does not start now. `is_permanent`: waiting will not help, somebody must change something.

    `is_for_person`: only a person's answer to a gate is missing.
    """

    why: str
    is_permanent: bool
    is_for_person: bool = False


@value
class WorkerSlot:
    """One slot of the run and what its attempt is doing. Times are on the monotonic clock."""

    task: str
    title: str
    agent: str
    attempt: int
    stage: Stage
    doing: str
    started_at: float
    heard_at: float
    cost_usd: float | None = None


@value
class RunTotals:
    """Attempts made and their cost; `unknown_costs` counts attempts that reported none."""

    attempts: int = 0
    cost_usd: float = 0.0
    unknown_costs: int = 0

    def plus(self, cost_usd: float | None) -> RunTotals:
        """Return the totals with one more attempt."""
        return RunTotals(
            attempts=self.attempts + 1,
            cost_usd=self.cost_usd + (cost_usd or 0.0),
            unknown_costs=self.unknown_costs + (cost_usd is None),
        )


@value
class RunStatus:
    """The current state of a run, to display."""

    slots: tuple[WorkerSlot, ...]
    workers: int
    ready: int = 0
    blocked: int = 0
    landing: int = 0
    waiting: int = 0  # for a person
    done: int = 0
    failed: int = 0
    refusals: tuple[tuple[str, str], ...] = ()  # task, and why it does not start
    paused: str = ""
    is_draining: bool = False
    is_stopping: bool = False
    trouble: str = ""  # why the store is not available
    cost_usd: float = 0.0
    unknown_costs: int = 0


@value
class RunSummary:
    """The result of a run; each pair is a task and why."""

    done: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    waiting: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    totals: RunTotals
    paused: str = ""
    is_stopped: bool = False


def count_states(tasks: Sequence[Task]) -> dict[str, int]:
    """Return how many tasks are in which column of `RunStatus`."""
    columns = {
        READY: "ready",
        BLOCKED: "blocked",
        "landing": "landing",
        "review": "landing",
        WAITING: "waiting",
        DONE: "done",
        DEAD: "failed",
        FAILED: "failed",
    }
    counts: dict[str, int] = {}
    for task in tasks:
        if task.state in columns:
            counts[columns[task.state]] = counts.get(columns[task.state], 0) + 1
    return counts


def summarize(
    tasks: Sequence[Task],
    landings: Sequence[Landing],
    refusals: Mapping[str, StartRefusal],
    totals: RunTotals,
    *,
    paused: str,
    is_stopped: bool,
) -> RunSummary:
    """Return the result of a run, with the most useful reason for each task that is not done."""
    reasons = {landing.task: landing.reason for landing in landings}
    held = {landing.task for landing in landings if landing.state == HELD}
    waiting = [(task.id, task.why) for task in tasks if task.state == WAITING]
    left: list[tuple[str, str]] = []
    for task in tasks:
        if task.state in (*FINISHED, WAITING):
            continue
        refusal = refusals.get(task.id) if task.state == READY else None
        if task.id in held:
            waiting.append((task.id, reasons[task.id]))
        elif refusal is not None and refusal.is_for_person:
            waiting.append((task.id, refusal.why))
        else:
            why = reasons.get(task.id) or _why_left(task, refusals.get(task.id))
            left.append((task.id, f"{task.state}{f': {why}' if why else ''}"))
    return RunSummary(
        done=tuple(task.id for task in tasks if task.state == DONE),
        failed=tuple((task.id, task.why) for task in tasks if task.state in (DEAD, FAILED)),
        waiting=tuple(waiting),
        left=tuple(left),
        totals=totals,
        paused=paused,
        is_stopped=is_stopped,
    )


def _why_left(task: Task, refusal: StartRefusal | None) -> str:
    if task.state in IN_PROGRESS and task.owner:
        return f"in the hands of {task.owner}"
    why = refusal.why if refusal is not None and task.state == READY else ""
    if refusal is not None and refusal.is_permanent:
        return why  # more useful than why the task was returned
    return task.why or why
