"""The metrics of a period as JSON, and as text with small charts."""

from __future__ import annotations

from landlane.clock import duration_text, rfc3339
from landlane.stats.metrics import DEFINITIONS, MONEY, RATE
from landlane.usage.model import money_words
from landlane.usage.to_json import dollars, total_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.stats.metrics import Metric, Stats
    from landlane.usage.period import Period

_BARS = "▁▂▃▄▅▆▇█"
_NONE = "·"  # a day without any
_WIDEST = 60


def stats_json(stats: Stats) -> dict[str, Any]:
    """Return all metrics by name. An unknown value is null and has a reason."""
    return {
        "since": rfc3339(stats.period.since),
        "until": rfc3339(stats.period.until),
        "metrics": {one.name: metric_json(one) for one in stats.metrics},
        "cost": total_json(stats.cost),
        "days": [
            {"day": day, **{name: series[at] for name, series in stats.daily.items() if name != "cost"}}
            | {"cost_usd": dollars(stats.daily["cost"][at])}
            for at, day in enumerate(stats.days)
        ],
        "definitions": definitions_json(),
    }


def metric_json(metric: Metric) -> dict[str, Any]:
    """Return one metric as JSON."""
    unit = DEFINITIONS[metric.name][0]
    found: dict[str, Any] = {
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


def metric_row(metric: Metric, stats: Stats) -> list[str]:
    """Return a table row: name, value, numbers behind it, and a chart by day."""
    series = stats.daily.get(metric.name, ())
    return [DEFINITIONS[metric.name][1], _value(metric), _from(metric), picture(series)]


def _value(metric: Metric) -> str:
    if metric.value is None:
        return "unknown"
    text = _value_text(metric.name, metric.value)
    return f"at least {text}" if metric.is_least else text


def _value_text(name: str, value: float) -> str:
    match DEFINITIONS[name][0]:
        case "rate":
            return f"{100 * value:.1f}%"
        case "ms":
            return duration_text(int(value)) if value else "0s"
        case "usd":
            return money_words(int(value) if name == "cost" else _rounded(int(value)))
        case _:
            return f"{int(value):,}"


def _rounded(micros: int) -> int:
    """Return a quotient rounded to cents if it is large enough; it is not exact anyway."""
    return round(micros, -4) if micros >= 100_000 else micros


def _from(metric: Metric) -> str:
    parts: list[str] = []
    if metric.denominator:
        is_money = DEFINITIONS[metric.name][0] == MONEY
        numerator = money_words(metric.numerator or 0) if is_money else str(metric.numerator)
        parts.append(f"{numerator} {'for' if is_money else 'of'} {metric.denominator}")
    elif metric.name == "claim_wait" and metric.numerator:
        parts.append(f"{metric.numerator} {'wait' if metric.numerator == 1 else 'waits'}")
    return "; ".join([*parts, *([metric.note] if metric.note else [])])


def picture(series: Sequence[int]) -> str:
    """Return a bar chart with a bar per day or per several days, scaled to the largest."""
    if len(series) < 2 or not any(series):
        return ""
    width = -(-len(series) // _WIDEST)
    sums = [sum(series[at : at + width]) for at in range(0, len(series), width)]
    most = max(sums)
    return "".join(_BARS[-(-one * len(_BARS) // most) - 1] if one else _NONE for one in sums)


def period_words(period: Period) -> str:
    """Return a period as text."""
    if not period.since:
        return f"everything before {rfc3339(period.until)[:19]}Z"
    return f"{rfc3339(period.since)[:19]}Z to {rfc3339(period.until)[:19]}Z"
