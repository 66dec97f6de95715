"""The answers of the commands under "Plan and run"."""

from __future__ import annotations

from typing import TypedDict

from landlane.cli.answers.base import Answer
from landlane.fanout.json_types import SplitTaskJson
from landlane.journal.json_types import EntryJson
from landlane.landing.json_types import LandingJson, QueueJson, TargetStatusJson
from landlane.plans.json_types import PlanJson
from landlane.status.json_types import TaskFactsJson
from landlane.tasks.json_types import (
    AttemptJson,
    LessonJson,
    LineageJson,
    PoolJson,
    SimilarTaskJson,
    TaskJson,
)
from landlane.workers.json_types import RunSummaryJson

_MergedAs = TypedDict("_MergedAs", {"class": str | None})


class BusyFile(_MergedAs):
    """A file that several open branches change; `class` is how it is merged, if by its kind."""

    path: str
    branches: int
    conflicts: int


class OpenBranch(TypedDict):
    """A branch that is not on the target yet."""

    branch: str
    landing: str | None
    agent: str | None
    head: str


class PredictedConflict(TypedDict):
    """Two branches, or a branch and the target, that conflict."""

    one: str
    other: str
    paths: list[str]


class LinkedTask(TypedDict):
    """A task that was found to look like another."""

    id: str
    reason: str


class SkippedTask(TypedDict):
    """A line of a checklist that looks like tasks that exist."""

    title: str
    similar: list[SimilarTaskJson]


class WorkerLog(TypedDict):
    """The log of an attempt; `left_out` counts the lines before the first one."""

    attempt: int
    machine: str
    is_here: bool
    lines: list[str]
    left_out: int
    note: str


class _OneTaskAnswer(Answer):
    task: TaskJson


class PlanCheckAnswer(Answer):
    """The answer to `plan check`."""

    plan: PlanJson


class QueueEjectAnswer(Answer):
    """The answer to `queue eject`."""

    landing: LandingJson


class QueueEntriesAnswer(Answer):
    """The answer to `queue list`."""

    landings: list[LandingJson]
    queue: QueueJson
    target: TargetStatusJson


class QueueConflictsAnswer(Answer):
    """The answer to `queue list --conflicts`; `order` is the one in which most branches land."""

    target: str
    branches: list[OpenBranch]
    conflicts: list[PredictedConflict]
    hot: list[BusyFile]
    order: list[str]


QueueListAnswer = QueueEntriesAnswer | QueueConflictsAnswer


class QueueResumeAnswer(Answer):
    """The answer to `queue resume`."""

    queue: QueueJson


class QueueRunAnswer(Answer):
    """The answer to `queue run`."""

    landings: list[LandingJson]


class ShownLandingAnswer(Answer):
    """The answer to `queue show ID`."""

    landing: LandingJson


class ShownTargetAnswer(Answer):
    """The answer to `queue show`."""

    target: TargetStatusJson


QueueShowAnswer = ShownLandingAnswer | ShownTargetAnswer


class RunAnswer(Answer):
    """The answer to `run`."""

    summary: RunSummaryJson


class RunPauseAnswer(Answer):
    """The answer to `run pause`; `running` are the tasks whose attempts go on."""

    pool: PoolJson
    running: list[str]


class RunResumeAnswer(Answer):
    """The answer to `run resume`."""

    pool: PoolJson


class TaskAddAnswer(Answer):
    """The answer to `task add`."""

    task: TaskJson
    similar: list[SimilarTaskJson]
    new: bool


class TaskAfterAnswer(_OneTaskAnswer):
    """The answer to `task after`."""


class TaskBlockAnswer(_OneTaskAnswer):
    """The answer to `task block`."""


class TaskDropAnswer(_OneTaskAnswer):
    """The answer to `task drop`."""


class TaskEditAnswer(_OneTaskAnswer):
    """The answer to `task edit`."""


class SyncNoteJson(TypedDict):
    """Something in a checklist that a person must look at; the line is null if it is about no line."""

    line: int | None
    text: str


class TaskImportAnswer(Answer):
    """The answer to `task import`; `known` counts the lines that were imported before."""

    tasks: list[TaskJson]
    known: int
    skipped: list[SkippedTask]
    notes: list[SyncNoteJson]


class TaskSyncAnswer(Answer):
    """The answer to `task sync`: tasks added from the file and listed in it, lines ticked, tasks edited."""

    added: list[TaskJson]
    listed: list[str]
    ticked: list[int]
    edited: list[str]
    notes: list[SyncNoteJson]


class TaskListAnswer(Answer):
    """The answer to `task list`."""

    tasks: list[TaskJson]


class TaskLogAnswer(Answer):
    """The answer to `task log`."""

    entries: list[EntryJson]
    attempts: list[AttemptJson]
    log: WorkerLog | None


class OneSplitAnswer(Answer):
    """The answer to `task parts TASK`."""

    fan: SplitTaskJson


class AllSplitsAnswer(Answer):
    """The answer to `task parts`."""

    fans: list[SplitTaskJson]


TaskPartsAnswer = OneSplitAnswer | AllSplitsAnswer


class TaskRetryAnswer(_OneTaskAnswer):
    """The answer to `task retry`."""


class TaskShowAnswer(Answer, TaskFactsJson):
    """The answer to `task show`."""

    task: TaskJson
    similar: list[LinkedTask]
    feedback: list[LessonJson]
    branches: list[str]
    retries: LineageJson
    family_feedback: list[LessonJson]


class TaskSplitAnswer(Answer):
    """The answer to `task split`."""

    fan: SplitTaskJson
    tasks: list[TaskJson]
    new: bool


class TaskUnblockAnswer(_OneTaskAnswer):
    """The answer to `task unblock`."""
