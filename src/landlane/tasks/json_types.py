"""The types of tasks, attempts, retry budgets and the worker pool in JSON answers."""

from __future__ import annotations

from typing import Any, TypedDict

from landlane.claims.json_types import ClaimJson
from landlane.json_time import Time
from landlane.tasks.model import AttemptState, TaskState, WaitKind
from landlane.tasks.worker_pool import PoolState


class TriesJson(TypedDict):
    """The attempts of a task that count, and how many it has."""

    charged: int
    limit: int


class WaitJson(TypedDict):
    """One thing that a task waits for."""

    kind: WaitKind
    id: str | None
    needs_person: bool
    holder: str | None
    path: str | None
    why: str | None
    until: Time | None
    resets_at: Time | None


class TaskJson(TypedDict):
    """A task of the queue."""

    id: str
    title: str
    body: str
    state: TaskState
    owner: str | None
    session: str | None
    kind: str | None
    role: str | None
    assigned_to: str | None
    fixes_target: bool
    priority: int
    paths: list[str]
    after: list[str]
    attempt: int
    failures: int
    lapses: int
    max_attempts: int
    tries: TriesJson
    waits_for: list[WaitJson]
    lineage: str
    branch: str | None
    head: str | None
    check: str | None
    output: str | None
    key: str | None
    labels: list[str]
    why: str | None
    next_action: str | None
    result: str | None
    created: Time
    taken: Time | None


class SimilarTaskJson(TypedDict):
    """A task that looks like the same work."""

    id: str
    title: str
    state: str
    score: float
    reason: str


class EvidenceJson(TypedDict):
    """One piece of evidence, present or missing."""

    name: str
    seen: bool
    found: str
    hint: str | None


class HeldBackJson(TypedDict):
    """A task that is held back after a failure."""

    task: str
    until: Time


class OverBudgetJson(TypedDict):
    """A task whose budget is used up."""

    task: str
    why: str


class NothingReadyJson(TypedDict):
    """Why there is no task to take."""

    held_back: list[HeldBackJson]
    over_budget: list[OverBudgetJson]
    counts: dict[str, int]
    held_up: list[str]
    in_hand: list[str]
    waiting: list[TaskJson]
    task: None
    claims: list[ClaimJson]


class LessonJson(TypedDict):
    """What an earlier owner of a task reported."""

    at: Time
    kind: str
    agent: str | None
    attempt: int
    why: str


class AttemptJson(TypedDict):
    """One attempt of a worker; its usage, as the worker reported it, is null while it is unknown."""

    id: str
    task: str
    attempt: int
    agent: str
    role: str
    client: str
    kind: str | None
    session: str
    machine: str
    state: AttemptState
    started_at: Time
    seen_at: Time | None
    ended_at: Time | None
    doing: str
    code: str | None
    reason: str | None
    outcome: str | None
    head: str | None
    usage: dict[str, Any] | None
    resets_at: Time | None


class FamilyTaskJson(TypedDict):
    """A task that shares a retry budget."""

    id: str
    state: str


class LineageJson(TypedDict):
    """The retry budget of a task and of the tasks that followed from it, and what is used of it."""

    lineage: str
    attempts: int
    max_attempts: int
    seconds: int
    max_seconds: int
    cost_usd: float
    unknown_costs: int
    max_cost_usd: float | None
    rounds: int
    stopped: str | None
    not_before: Time | None
    tasks: list[FamilyTaskJson]


class StartFailureJson(TypedDict):
    """A worker that failed to start."""

    task: str
    reason: str
    at: Time


class AdmissionJson(TypedDict):
    """How many workers of one kind are started, and until when."""

    limit: int
    until: Time
    resets_at: Time | None


class PoolJson(TypedDict):
    """The worker pool: whether workers are started."""

    state: PoolState
    paused: str | None
    paused_at: Time | None
    paused_by: str | None
    pauses_landing: bool
    failures: list[StartFailureJson]
    admission: dict[str, AdmissionJson]
