"""The metrics of this week beside those of the three weeks before, as the rows of a table."""

from __future__ import annotations

from landlane.stats.calculate import read_inputs
from landlane.stats.metrics import COUNT, DEFINITIONS, LENGTH, MONEY
from landlane.stats.to_json import picture
from landlane.units import money, rough_duration
from landlane.usage.period import DAY_MS, Period
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.stats.metrics import Metric, Stats

WEEKS = 4
_WEEK_MS = 7 * DAY_MS


@value
class _Row:
    """A row of the table; `TARGET` in its label becomes the name of the target branch."""

    label: str
    metric: str
    has_chart: bool = True


_ROWS = (
    _Row(label="Tasks landed", metric="tasks_landed"),
    _Row(label="  per day", metric="tasks_per_day", has_chart=False),
    _Row(label="Merged without a conflict", metric="merged_cleanly"),
    _Row(label="  resolved by structure", metric="conflicts_resolved"),
    _Row(label="Duplicates stopped", metric="duplicates_stopped", has_chart=False),
    _Row(label="Bounced", metric="bounced"),
    _Row(label="TARGET failing", metric="target_red", has_chart=False),
    _Row(label="Waiting for claims", metric="claim_wait"),
    _Row(label="Tasks done", metric="tasks_done"),
    _Row(label="  per day", metric="tasks_done_per_day", has_chart=False),
    _Row(label="Coordination overhead", metric="coordination_overhead"),
    _Row(label="Your decisions", metric="decisions"),
    _Row(label="  time you spent on them", metric="decision_time", has_chart=False),
    _Row(label="  per task", metric="decision_time_per_task", has_chart=False),
    _Row(label="Cost per landed task", metric="cost_per_landed_task"),
    _Row(label="  in failed attempts", metric="failed_cost_per_task", has_chart=False),
    _Row(label="Setup", metric="setup_time", has_chart=False),
    _Row(label="Cost per task", metric="cost_per_task"),
)


def weekly_stats(repo: Repository) -> list[Stats]:
    """Return the metrics of the last four weeks, the newest first; each week is seven days up to now."""
    end = repo.wall_ms() + 1
    periods = [Period(since=max(end - (n + 1) * _WEEK_MS, 0), until=end - n * _WEEK_MS) for n in range(WEEKS)]
    inputs = read_inputs(repo, Period(since=periods[-1].since, until=end))
    return [inputs.measure(period) for period in periods]


def week_rows(weeks: Sequence[Stats], target: str) -> list[list[str]]:
    """Return the rows of the table: label, this week, last week, and a chart of all weeks."""
    return [
        [
            row.label.replace("TARGET", target or "target"),
            value_text(weeks[0].metric(row.metric)),
            value_text(weeks[1].metric(row.metric)),
            _chart(weeks, row.metric) if row.has_chart else "",
        ]
        for row in _ROWS
    ] + [
        [f"  {kind}", _kind_text(weeks[0], kind), _kind_text(weeks[1], kind), ""]
        for kind in sorted({one.kind for week in weeks[:2] for one in week.kinds})
    ]


def _kind_text(found: Stats, kind: str) -> str:
    """Return what a task of a kind cost, as people read it."""
    cost = next((one.cost_per_task for one in found.kinds if one.kind == kind), None)
    return "–" if cost is None else money(cost)


def period_rows(found: Stats, target: str) -> list[list[str]]:
    """Return the rows of the table for one period: label and number."""
    return [
        [row.label.replace("TARGET", target or "target"), value_text(found.metric(row.metric))]
        for row in _ROWS
    ] + [[f"  {one.kind}", _kind_text(found, one.kind)] for one in found.kinds]


def value_text(metric: Metric) -> str:
    """Return the number of a metric as people read it."""
    unit = DEFINITIONS[metric.name][0]
    if metric.value is None:
        is_unknown = metric.is_least or (unit == MONEY and metric.denominator != 0)
        return "unknown" if is_unknown else "–"
    if unit == MONEY:
        return money(round(metric.value), has_unknown=metric.is_least)
    if unit == LENGTH:
        text = rough_duration(round(metric.value))
    elif unit == COUNT:
        text = f"{metric.value:,.0f}" if float(metric.value).is_integer() else f"{metric.value:,.1f}"
    else:
        text = f"{100 * metric.value:.0f} %"
    return f"≥ {text}" if metric.is_least else text


def _chart(weeks: Sequence[Stats], name: str) -> str:
    """Return a bar for each week, the oldest first; none unless two weeks have a number."""
    values = [week.metric(name).value for week in reversed(weeks)]
    if sum(one is not None for one in values) < 2:
        return ""
    return picture([round(1000 * (one or 0)) for one in values])
