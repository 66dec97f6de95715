"""The types of checked plans in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.plans.graph import ConflictKind


class PlanTaskJson(TypedDict):
    """A task of a plan."""

    name: str
    title: str
    line: int
    key: str
    done: bool
    wave: int | None
    after: list[str]
    paths: list[str]
    role: str | None
    agent: str | None
    check: str | None
    attempts: int
    estimate_seconds: float | None
    budget_usd: float | None
    needs: dict[str, int]
    contract: bool


class PlanSequenceJson(TypedDict):
    """A task that follows another although the plan does not say so, and why."""

    task: str
    after: str
    kind: ConflictKind
    why: str


class CriticalPathJson(TypedDict):
    """The tasks that take the longest one after the other."""

    tasks: list[str]
    seconds: float | None
    without_estimate: list[str]


class PlanCostJson(TypedDict):
    """What a plan may cost."""

    at_most_usd: float | None
    known_usd: float | None
    limit_usd: float | None
    unknown_for: list[str]


class PlanFindingJson(TypedDict):
    """A problem of a plan, or a warning."""

    code: str
    message: str
    hint: str | None
    tasks: list[str]
    line: int | None


class PlanJson(TypedDict):
    """A plan that was checked."""

    title: str | None
    digest: str
    tasks: list[PlanTaskJson]
    order: list[str]
    waves: list[list[str]]
    at_once: int
    sequence: list[PlanSequenceJson]
    critical_path: CriticalPathJson
    cost: PlanCostJson
    problems: list[PlanFindingJson]
    warnings: list[PlanFindingJson]
