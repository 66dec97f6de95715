"""The types of the overview and of a task in full in JSON answers."""

from __future__ import annotations

from typing import Literal, TypedDict

from landlane.json_time import Time
from landlane.landing.model import LandingState

TargetWord = Literal["passing", "failing", "untested"]


class HeadlineJson(TypedDict):
    """The headline of a repository, and each of its numbers."""

    text: str
    repository: str
    needs_you: int
    working: int
    landing: int
    ready: int
    spent_usd: float
    is_spent_known: bool
    day_budget_usd: float | None
    target: str | None
    target_state: TargetWord
    workers_paused: bool
    queue_paused: bool


class WorkJson(TypedDict):
    """What an agent works on."""

    task: str | None
    title: str | None
    agent: str
    tries: int | None
    max_tries: int | None
    cost_usd: float | None
    is_cost_known: bool
    claims: list[str]


class ActivityJson(TypedDict):
    """What an agent does now, and when it was last active."""

    doing: str
    seen_at: Time | None
    seen_accuracy_seconds: int | None
    idle_seconds: int | None
    client: str | None
    limit_ends_in_seconds: int | None


class WorkingJson(WorkJson, ActivityJson):
    """A task in progress, or a session that holds claims without a task."""


class LandingRowJson(TypedDict):
    """A branch on its way onto the target, with the check that runs and the estimates."""

    landing: str
    task: str | None
    title: str
    agent: str
    state: LandingState
    doing: str
    check: str | None
    check_seconds: int | None
    check_estimate_seconds: int | None
    eta_seconds: int | None


class WaitingJson(TypedDict):
    """A session that waits for claims, or a task that waits."""

    agent: str | None
    task: str | None
    title: str | None
    paths: list[str]
    holders: list[str]
    waits_for: list[str]
    position: int | None
    why: str | None
    resets_at: Time | None


class MoneyJson(TypedDict):
    """Today's spending, its share per landed task, and the task that is closest to its budget."""

    today_usd: float
    is_known: bool
    day_budget_usd: float | None
    per_landed_usd: float | None
    closest_task: str | None
    closest_usd: float | None
    task_budget_usd: float | None


class OwnerJson(TypedDict):
    """Who works on a task."""

    agent: str
    client: str | None
    role: str | None
    seen_at: Time | None


class TaskWorkspaceJson(TypedDict):
    """The checkout of a task."""

    id: str
    path: str
    branch: str


class BlockedTaskJson(TypedDict):
    """A task that waits for another."""

    id: str
    title: str


class CostJson(TypedDict):
    """What was spent; null when none of it is known."""

    usd: float | None
    is_known: bool


class TaskCostJson(CostJson):
    """What a task has cost, its budget, and what counts against that."""

    budget_usd: float | None
    counted_usd: float | None


class TaskAttemptJson(TypedDict):
    """One attempt at a task, by a worker or by hand."""

    attempt: int
    agent: str
    state: Literal["running", "done", "failed", "returned"]
    started_at: Time
    ended_at: Time | None
    doing: str | None
    result: str | None
    lines: list[str]
    landing: str | None
    cost: CostJson
    is_worker: bool


class TaskFactsJson(TypedDict):
    """Who works on a task, where, what it cost, what waits for it, and its attempts."""

    owner_session: OwnerJson | None
    workspace: TaskWorkspaceJson | None
    blocks: list[BlockedTaskJson]
    cost: TaskCostJson
    added_by: str | None
    attempts: list[TaskAttemptJson]
