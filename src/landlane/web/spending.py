"""Money: spent today, per landed change, per client and per task; and the week in small charts."""

from __future__ import annotations

import threading
import time

from landlane.clients.model import CLIENTS
from landlane.errors import LandlaneError
from landlane.landing.model import LANDED
from landlane.landing.records import list_landings
from landlane.stats.calculate import stats
from landlane.stats.weeks import value_text
from landlane.tasks.records import task_titles
from landlane.usage.model import add_up_by, day_of
from landlane.usage.period import DAY_MS, Period
from landlane.usage.totals import of_day
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.repository import Repository
    from landlane.stats.metrics import Stats
    from landlane.usage.model import Total, UsageEntry
    from landlane.web.visit import Visit

_MOST_TASKS = 4
_KEPT_SECONDS = 60.0
_WEEK_DAYS = 7
_CHARTS = (
    ("tasks_landed", "landed", "landed"),
    ("bounced", "bounced", ""),
    ("claim_wait", "waited for claims", ""),
    ("decisions", "decisions", ""),
)


@value
class Share:
    """A part of what was spent today."""

    name: str
    task: str
    usd: float | None
    is_known: bool
    width: float  # per cent of the largest part
    is_rest: bool = False


@value
class Chart:
    """One number of the last seven days."""

    text: str
    label: str
    bars: tuple[int, ...]  # heights from 0 to 26


@value
class Spending:
    """What was spent today, and on what."""

    usd: float
    is_known: bool
    has_entries: bool
    budget_usd: float | None
    share: float  # per cent of the budget
    landed: int
    per_landed_usd: float | None
    in_landed_usd: float
    elsewhere_usd: float
    clients: tuple[Share, ...]
    tasks: tuple[Share, ...]
    more_tasks: int
    charts: tuple[Chart, ...]


def read_spending(visit: Visit, weeks: Weeks) -> Spending:
    """Return today's spending; unknown costs stay unknown."""
    repo, now = visit.repo, visit.now
    today = day_of(now)
    entries = repo.store.view(lambda snapshot: of_day(snapshot, today))
    total = add_up_by(entries, lambda _: "").get("")
    landed = {
        one.task or one.id: one.task
        for one in list_landings(repo, (LANDED,))
        if day_of(one.ended_at) == today
    }
    by_task = add_up_by(entries, lambda entry: entry.task or entry.lineage)
    in_landed = sum(by_task[task].cost_micros for task in landed.values() if task in by_task)
    spent = total.cost_micros if total is not None else 0
    limit = repo.settings.budgets.day_micros
    titles = task_titles(repo, [task for task in by_task if task][:_MOST_TASKS])
    tasks = [
        _share(f"{task} {titles.get(task, '')}".strip(), task, total)
        for task, total in by_task.items()
        if task
    ]
    return Spending(
        usd=spent / 1_000_000,
        is_known=total is None or total.is_known,
        has_entries=total is not None,
        budget_usd=None if limit is None else limit / 1_000_000,
        share=min(100 * spent / limit, 100.0) if limit else 0.0,
        landed=len(landed),
        per_landed_usd=spent / len(landed) / 1_000_000 if landed and spent else None,
        in_landed_usd=in_landed / 1_000_000,
        elsewhere_usd=(spent - in_landed) / 1_000_000,
        clients=_widths(
            [_share(_client(name), "", one, is_rest=not name) for name, one in _clients(entries).items()]
        ),
        tasks=_widths(tasks[:_MOST_TASKS]),
        more_tasks=max(len(tasks) - _MOST_TASKS, 0),
        charts=weeks.charts(repo, now),
    )


def _clients(entries: Sequence[UsageEntry]) -> Mapping[str, Total]:
    return add_up_by(entries, lambda entry: entry.client if entry.task or entry.lineage else "")


def _client(name: str) -> str:
    known = CLIENTS.get(name)
    if known is not None:
        return known.title
    return {"": "unattributed", "command": "scripts"}.get(name, name)


def _share(name: str, task: str, total: Total, *, is_rest: bool = False) -> Share:
    is_unknown = bool(total.entries) and total.unknown == total.entries
    usd = None if is_unknown else total.cost_micros / 1_000_000
    return Share(name=name, task=task, usd=usd, is_known=total.is_known, width=0.0, is_rest=is_rest)


def _widths(shares: Sequence[Share]) -> tuple[Share, ...]:
    most = max((share.usd or 0 for share in shares), default=0)
    return tuple(replace(one, width=round(100 * (one.usd or 0) / most, 1) if most else 0.0) for one in shares)


class Weeks:
    """The metrics of seven days. They read much, so a thread reads them at most once a minute."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._found: tuple[Chart, ...] = ()
        self._read_at = 0.0
        self._is_reading = False

    def charts(self, repo: Repository, now: int) -> tuple[Chart, ...]:
        """Return what was read last; nothing before the first time."""
        with self._guard:
            is_due = not self._read_at or time.monotonic() - self._read_at > _KEPT_SECONDS
            if is_due and not self._is_reading:
                self._is_reading = True
                threading.Thread(target=self._read, args=(repo, now), daemon=True).start()
            return self._found

    def _read(self, repo: Repository, now: int) -> None:
        found: tuple[Chart, ...] | None = None
        try:
            week = stats(repo, Period(since=max(now - _WEEK_DAYS * DAY_MS, 0), until=now + 1))
            found = tuple(_chart(week, *one) for one in _CHARTS)
        except (LandlaneError, OSError):
            pass  # the store is busy: the next page tries again
        with self._guard:
            self._found = self._found if found is None else found
            self._read_at = time.monotonic()
            self._is_reading = False


def _chart(week: Stats, metric: str, label: str, daily: str) -> Chart:
    series = week.daily.get(daily or metric, ())[-_WEEK_DAYS:]
    most = max(series, default=0)
    bars = tuple(max(round(26 * one / most), 1) if one else 0 for one in series) if most else ()
    return Chart(text=value_text(week.metric(metric)), label=label, bars=bars)
