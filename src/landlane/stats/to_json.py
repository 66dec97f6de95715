"""The metrics of a period as JSON, and small charts."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.stats.metrics import DEFINITIONS, MONEY, RATE
from landlane.usage.to_json import dollars, total_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.stats.json_types import KindJson, MetricJson, PeriodJson, StatsJson
    from landlane.stats.metrics import Metric, Stats
    from landlane.usage.period import Period

_BARS = "▁▂▃▄▅▆▇█"
_NONE = "·"  # a day without any
_WIDEST = 60


def stats_json(stats: Stats) -> StatsJson:
    """Return all metrics by name. An unknown value is null and has a reason."""
    return {
        **period_json(stats),
        "cost": total_json(stats.cost),
        "kinds": kinds_json(stats),
        "days": [
            {
                "day": day,
                "changes_landed": stats.daily["changes_landed"][at],
                "bounced": stats.daily["bounced"][at],
                "attempts": stats.daily["attempts"][at],
                "cost_usd": dollars(stats.daily["cost"][at]),
            }
            for at, day in enumerate(stats.days)
        ],
        "definitions": definitions_json(),
    }


def period_json(stats: Stats) -> PeriodJson:
    """Return a period and its metrics by name."""
    return {
        "since": rfc3339(stats.period.since),
        "until": rfc3339(stats.period.until),
        "metrics": {one.name: metric_json(one) for one in stats.metrics},
    }


def kinds_json(stats: Stats) -> list[KindJson]:
    """Return the tasks done and their cost by the kind of task."""
    return [
        {
            "kind": one.kind,
            "tasks_done": one.tasks,
            "cost_usd": None if one.cost_micros is None else dollars(one.cost_micros),
            "cost_per_task_usd": None if one.cost_per_task is None else dollars(one.cost_per_task),
        }
        for one in stats.kinds
    ]


def metric_json(metric: Metric) -> MetricJson:
    """Return one metric as JSON."""
    unit = DEFINITIONS[metric.name][0]
    found: MetricJson = {
        "value": metric.value / 1_000_000 if unit == MONEY and metric.value is not None else metric.value,
        "unit": unit,
    }
    if unit == RATE or metric.denominator is not None:
        is_money = unit == MONEY and metric.numerator is not None
        found["numerator"] = dollars(metric.numerator) if is_money else metric.numerator
        found["denominator"] = metric.denominator
    if metric.name == "claim_wait":
        found["waits"] = metric.numerator
    if metric.is_least:
        found["is_least"] = True
    if metric.note:
        found["note"] = metric.note
    return found


def definitions_json() -> dict[str, str]:
    """Return the definition of each metric."""
    return {name: meaning for name, (_, _, meaning) in DEFINITIONS.items()}


def picture(series: Sequence[int]) -> str:
    """Return a bar chart with a bar per day or per several days, scaled to the largest."""
    if len(series) < 2 or not any(series):
        return ""
    width = -(-len(series) // _WIDEST)
    sums = [sum(series[at : at + width]) for at in range(0, len(series), width)]
    most = max(sums)
    return "".join(_BARS[-(-one * len(_BARS) // most) - 1] if one else _NONE for one in sums)


def period_words(period: Period) -> str:
    """Return a period as the header of a column."""
    until = rfc3339(period.until - 1)[:10]
    return f"{rfc3339(period.since)[:10]} to {until}" if period.since else f"until {until}"
