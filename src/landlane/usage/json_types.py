"""The types of costs in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.json_time import Time


class UsageJson(TypedDict):
    """One record of cost."""

    id: str
    key: str
    at: Time
    task: str | None
    lineage: str | None
    attempt: int | None
    agent: str | None
    client: str | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    cost_micros: int | None
    known_by: str | None
    is_least: bool
    is_final: bool
    links: list[str]


class TotalJson(TypedDict):
    """A sum of recorded cost; null when none of the costs is known."""

    cost_usd: float | None
    cost_micros: int | None
    is_least: bool
    entries: int
    unknown: int
    input_tokens: int
    output_tokens: int
    unknown_tokens: int


class BudgetedTotalJson(TotalJson):
    """A sum of recorded cost, and its limit."""

    budget_usd: float | None


class TotalsJson(TypedDict):
    """What was spent in total, without a task, per task, and per task with those that followed from it."""

    total: TotalJson
    unattributed: TotalJson
    tasks: dict[str, TotalJson]
    lineages: dict[str, TotalJson]


class ImportedJson(TypedDict):
    """The result of an import."""

    booked: int
    known: int
    differing: int
    unattributed: int
    unknown_tasks: list[str]
    total: TotalJson
