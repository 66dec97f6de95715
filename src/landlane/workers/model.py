"""Runs and attempts as values: the request, worker slots, outcomes, status and summary."""

from __future__ import annotations

from enum import StrEnum

from landlane.landing.model import HELD
from landlane.tasks.model import (
    BLOCKED,
    DEAD,
    DONE,
    DROPPED,
    FAILED,
    FINISHED,
    FIXES_TARGET,
    IN_PROGRESS,
    READY,
    REVIEW,
    REVIEW_KIND,
    WAITING,
    AttemptOutcome,
)
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from landlane.landing.model import Landing, TargetFailure
    from landlane.tasks.model import Task
    from landlane.usage.model import Budget

COMMAND = "command"  # the client of an agent that is not a coding client
ALL_SLOTS_TAKEN = "all workers are busy"


class WorkerProtocol(StrEnum):
    """How a command reports the end of its work."""

    EXIT = "exit"  # by its exit code
    MESSAGES = "messages"  # by the messages of the worker protocol


EXIT, MESSAGES = WorkerProtocol


class Stage(StrEnum):
    """What an attempt is doing."""

    STARTING = "starting"  # the supervisor has not taken its task yet
    PREPARING = "preparing"
    WORKING = "working"
    COLLECTING = "collecting its change"
    VERIFYING = "verifying"
    SUBMITTING = "submitting"


WITHOUT_ATTEMPT = (AttemptOutcome.NOT_TAKEN, AttemptOutcome.NOT_STARTED)


@value
class Agent:
    """One kind of worker: a coding client, or a command with the protocol by which it reports."""

    name: str
    client: str = COMMAND
    command: tuple[str, ...] = ()
    protocol: WorkerProtocol = EXIT
    model: str = ""
    words: tuple[str, ...] = ()
    role: str = ""
    needs: tuple[tuple[str, int], ...] = ()
    unix_sockets: bool = False  # may use those of other programs
    most: int = 0  # attempts of this agent at once; 0: as many as there are worker slots
    heartbeat_ms: int = 60_000
    limit_ms: int = 0

    @property
    def provider(self) -> str:
        """Whose limits count for it: those of its coding client, or of the command itself."""
        return self.name if self.client == COMMAND else self.client


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

    outcome: AttemptOutcome
    why: str = ""
    code: str = ""
    head: str = ""
    usage: dict[str, Any] | None = None
    keeps_workspace: bool = False
    cause: str = ""  # why the attempt failed, without what was decided then
    resets_at: int = 0  # when the provider's limit ends, as it said; wall-clock milliseconds
    retry_at: int = 0  # when the task is offered again
    rescue: str = ""  # where uncommitted work was saved

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
    """Why a task does not start now. `is_permanent`: waiting will not help.

    `is_for_person`: only a person's answer to a gate is missing. `budget` is the one of the day or the run
    that is used up.
    """

    why: str
    is_permanent: bool
    is_for_person: bool = False
    budget: Budget | None = None


@value
class FailingTarget:
    """A target that fails its own checks: only tasks that repair it are started."""

    branch: str
    failure: TargetFailure
    lineages: frozenset[str] = frozenset()  # of the tasks that are to repair it

    @property
    def why(self) -> str:
        """Why other tasks do not start."""
        return f"{self.branch} itself fails {self.failure.check}: only a task with --fixes-target starts"

    def may_start(self, task: Task) -> bool:
        """Return whether a task repairs the target, or is a part or a review of one that does."""
        return FIXES_TARGET in task.labels or task.lineage in self.lineages


@value
class WorkerSlot:
    """One slot of the run and what its attempt is doing. Times are on the monotonic clock."""

    task: str
    title: str
    agent: str  # as the settings name it
    tries: int
    max_tries: int
    stage: Stage
    doing: str
    started_at: float
    heard_at: float
    silence_seconds: float = 0.0  # that it may be silent; 0: unlimited
    cost_micros: int | None = None


class RunEventKind(StrEnum):
    """What happened to a task of a run, or to the run itself."""

    STARTED = "started"
    LANDED = "landed"
    DONE = "done"  # without landing: it has no commits, or is a review
    FAILED = "failed"  # one attempt
    LIMITED = "limited"  # by the provider
    NEEDS_PERSON = "needs a person"
    NOTE = "note"


@value
class RunEvent:
    """One event of a run, to display."""

    kind: RunEventKind
    task: str = ""
    title: str = ""
    text: str = ""  # why it failed, what a person is asked, or a note
    agent: str = ""
    tries: int = 0
    max_tries: int = 0
    id: str = ""  # of the inbox item
    code: str = ""  # why it failed, in one word
    commit: str = ""
    took_ms: int = 0
    cost_micros: int | None = None
    resets_at: int = 0  # wall-clock milliseconds
    retry_at: int = 0
    rescue: str = ""


@value
class RunTotals:
    """Attempts made and their cost; `unknown_costs` counts attempts that reported none."""

    attempts: int = 0
    cost_micros: int = 0
    unknown_costs: int = 0

    def plus(self, cost_micros: int | None) -> RunTotals:
        """Return the totals with one more attempt."""
        return RunTotals(
            attempts=self.attempts + 1,
            cost_micros=self.cost_micros + (cost_micros or 0),
            unknown_costs=self.unknown_costs + (cost_micros is None),
        )


class RowState(StrEnum):
    """How a task of a run is doing."""

    RUNNING = "running"
    SILENT = "silent"
    LIMITED = "limited"  # by the provider
    LANDING = "landing"


@value
class RunRow:
    """A task that is being worked on or lands now, to display."""

    task: str
    title: str
    tries: int
    max_tries: int
    doing: str
    state: RowState
    elapsed_ms: int
    agent: str = ""
    cost_micros: int | None = None


@value
class RunStatus:
    """The current state of a run, to display."""

    rows: tuple[RunRow, ...]
    workers: int
    ready: int = 0
    blocked: int = 0
    waiting: int = 0  # for a person
    done: int = 0
    failed: int = 0
    total: int = 0
    elapsed_ms: int = 0
    refusals: tuple[tuple[str, str], ...] = ()  # task, and why it does not start
    paused: str = ""
    budget: Budget | None = None  # of the day or the run, used up
    is_draining: bool = False
    is_stopping: bool = False
    trouble: str = ""  # why the store is not available
    failing: FailingTarget | None = None
    running: tuple[str, ...] = ()  # tasks with a running attempt
    totals: RunTotals = RunTotals()


@value
class TaskReason:
    """A task that is not done, and why; `id` is the inbox item that a person answers."""

    task: str
    title: str
    why: str
    state: str
    id: str = ""
    question: str = ""
    tries: int = 0
    is_stuck: bool = False  # another run would not start it, either


@value
class RunSummary:
    """The result of a run. `stopped` are the tasks of the attempts that were ended on request.

    `landed` are those of the done tasks whose change is on the target branch; others made no change.
    """

    done: tuple[str, ...]
    failed: tuple[TaskReason, ...]
    waiting: tuple[TaskReason, ...]
    left: tuple[TaskReason, ...]
    totals: RunTotals
    landed: tuple[str, ...] = ()
    took_ms: int = 0
    paused: str = ""
    is_stopped: bool = False  # by a signal
    stopped: tuple[str, ...] = ()
    rescues: tuple[str, ...] = ()
    failing: FailingTarget | None = None  # the target at the end of the run


def count_states(tasks: Sequence[Task], shown: Collection[str], held: Collection[str]) -> dict[str, int]:
    """Return how many tasks are in which column of `RunStatus`.

    A ready task with a row of its own is not counted as ready; one whose landing is held needs a person.
    """
    columns = {
        READY: "ready",
        BLOCKED: "blocked",
        WAITING: "waiting",
        DONE: "done",
        DEAD: "failed",
        FAILED: "failed",
    }
    counts: dict[str, int] = {"total": 0}
    for task in tasks:
        counts["total"] += task.state != DROPPED
        column = "waiting" if task.id in held else columns.get(task.state, "")
        if column and not (task.state == READY and task.id in shown):
            counts[column] = counts.get(column, 0) + 1
    return counts


def summarize(
    tasks: Sequence[Task],
    landings: Sequence[Landing],
    refusals: Mapping[str, StartRefusal],
    questions: Mapping[str, tuple[str, str]],
    totals: RunTotals,
) -> RunSummary:
    """Return the result of a run, with the most useful reason for each task that is not done.

    `questions` are the inbox items of tasks: id and question.
    """
    reasons = {landing.task: landing.reason for landing in landings}
    held = {landing.task: landing for landing in landings if landing.state == HELD}

    def reason_of(task: Task, why: str) -> TaskReason:
        item, question = questions.get(task.id, ("", ""))
        return TaskReason(
            task=task.id,
            title=task.title,
            why=why,
            state=task.state,
            id=item,
            question=question,
            tries=task.failures,
        )

    failed, waiting, left = list[TaskReason](), list[TaskReason](), list[TaskReason]()
    for task in tasks:
        refusal = refusals.get(task.id) if task.state == READY else None
        if task.state in (DEAD, FAILED):
            failed.append(reason_of(task, task.why))
        elif task.state == WAITING:
            waiting.append(reason_of(task, task.why))
        elif task.state in FINISHED:
            continue
        elif task.id in held:
            waiting.append(reason_of(task, held[task.id].reason))
        elif refusal is not None and refusal.is_for_person and task.kind == REVIEW_KIND:
            continue  # the task under review is listed
        elif task.state == REVIEW and task.id in questions:
            waiting.append(reason_of(task, task.why))
        elif refusal is not None and refusal.is_for_person:
            waiting.append(reason_of(task, refusal.why))
        else:
            one = reason_of(task, reasons.get(task.id) or _why_left(task, refusal))
            left.append(replace(one, is_stuck=refusal is not None and refusal.is_permanent))
    return RunSummary(
        done=tuple(task.id for task in tasks if task.state == DONE),
        failed=tuple(failed),
        waiting=tuple(waiting),
        left=tuple(left),
        totals=totals,
    )


def _why_left(task: Task, refusal: StartRefusal | None) -> str:
    if task.state in IN_PROGRESS and task.owner:
        return f"{task.owner} works on it"
    if refusal is not None and refusal.is_permanent:
        return refusal.why  # more useful than why the task was returned
    return task.why or (refusal.why if refusal is not None else "")
