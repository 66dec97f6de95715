"""The types of metrics in JSON answers."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from landlane.json_time import Time
from landlane.usage.json_types import TotalJson


class MetricJson(TypedDict):
    """One metric of a period; null if it is unknown."""

    value: float | None
    unit: str
    numerator: NotRequired[float | None]
    denominator: NotRequired[int | None]
    waits: NotRequired[int | None]
    is_least: NotRequired[bool]
    note: NotRequired[str]


class PeriodJson(TypedDict):
    """A period and its metrics by name."""

    since: Time
    until: Time
    metrics: dict[str, MetricJson]


class DayJson(TypedDict):
    """What happened on one day."""

    day: str
    changes_landed: int
    bounced: int
    attempts: int
    cost_usd: float | None


class KindJson(TypedDict):
    """The tasks of one kind that were done, and what they cost; null if that is unknown."""

    kind: str
    tasks_done: int
    cost_usd: float | None
    cost_per_task_usd: float | None


class StatsJson(PeriodJson):
    """A period, its metrics, its cost and its days."""

    cost: TotalJson
    kinds: list[KindJson]
    days: list[DayJson]
    definitions: dict[str, str]
