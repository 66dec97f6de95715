"""Calculate all metrics of a period from the journal and the recorded usage; `metrics.py` defines them.

A metric that cannot be calculated has a reason instead of a value. A rate has the numbers behind it.
"""

from __future__ import annotations

from landlane.claims.wait import list_waiters
from landlane.journal.read import read_entries
from landlane.stats.metrics import DEFINITIONS, KindTotal, Metric, Stats
from landlane.tasks.model import DEAD, REVIEW_KIND
from landlane.usage.model import add_up, day_of, days_between
from landlane.usage.period import read_period
from landlane.usage.totals import entries_in
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot
    from landlane.store.journal_chain import JournalEntry
    from landlane.usage.model import Total, UsageEntry
    from landlane.usage.period import Period

_WORK_ENDS = frozenset(
    f"task.{verb}" for verb in ("reported", "failed", "returned", "done", "dropped", "lapsed", "handed")
)
_MINUTE_MS = 60_000
_LANDINGS = frozenset(f"landing.{verb}" for verb in ("testing", "requeued", "landed", "bounced"))


class PeriodCounts:
    """The counts and sums of the journal entries of one period."""

    def __init__(self, period: Period) -> None:
        self._period = period
        self.landed: list[tuple[int, Mapping[str, Any]]] = []
        self.bounced: list[tuple[int, Mapping[str, Any]]] = []
        self.taken: list[tuple[int, str, int]] = []  # when, which task, and which attempt at it
        self.added: list[Mapping[str, Any]] = []
        self.refused: set[str] = set()
        self.dead: set[str] = set()
        self.rescued: set[str] = set()
        self.decisions: list[int | None] = []  # how long each took, if that is known
        self.waited_ms = 0
        self.waits = 0
        self.red_ms = 0
        self.has_tested = False
        self.done: dict[str, int] = {}  # task → when it was done
        self.kinds: dict[str, str] = {}  # task → its kind, of all tasks so far
        self.worked_ms = 0
        self.landing_ms = 0
        self.began_at = 0  # the first entry of the journal
        self.first_result_at = 0
        self._taken_at: dict[str, int] = {}
        self._red_since: dict[str, int] = {}

    def add(self, entry: JournalEntry) -> None:
        """Count one more entry; entries come in the order in which they were written."""
        if entry.at >= self._period.until:
            return
        self.began_at = self.began_at or entry.at
        if entry.kind.startswith("task."):
            self._note_work(entry)
        if entry.kind in _LANDINGS:
            self._note_landing(entry, entry.facts()["landing"])
        elif entry.kind == "wait.ended":
            self.add_wait(entry.at - int(entry.facts()["waited_ms"]), entry.at)
        elif self._period.has(entry.at):
            self._note(entry)

    def is_in_period(self, at: int) -> bool:
        """Return whether an instant is in the period."""
        return self._period.has(at)

    def close(self) -> None:
        """End the period: a target that is still failing counts as failing until now."""
        for since in self._red_since.values():
            self.red_ms += self._period.overlap_ms(since, self._period.until)
        self._red_since.clear()
        for since in self._taken_at.values():
            self.worked_ms += self._period.overlap_ms(since, self._period.until)
        self._taken_at.clear()

    def _note_work(self, entry: JournalEntry) -> None:
        """Count how long tasks are worked on, and which are done."""
        facts = entry.facts()
        task = str(facts.get("task") or "")
        if entry.kind == "task.added":
            self.kinds[task] = str(facts.get("kind") or ("output" if facts.get("output") else "code"))
        elif entry.kind == "task.taken":
            self._taken_at[task] = entry.at
        elif entry.kind in _WORK_ENDS and task in self._taken_at:
            self.worked_ms += self._period.overlap_ms(self._taken_at.pop(task), entry.at)
        if entry.kind == "task.done" and self.kinds.get(task) != REVIEW_KIND:
            self.first_result_at = self.first_result_at or entry.at
            if self._period.has(entry.at):
                self.done[task] = entry.at

    def add_wait(self, begin: int, end: int) -> None:
        """Count a wait for claims."""
        inside = self._period.overlap_ms(begin, end)
        self.waited_ms += inside
        self.waits += bool(inside) or self._period.has(end)

    def _note_landing(self, entry: JournalEntry, landing: Mapping[str, Any]) -> None:
        verb, target = entry.kind.partition(".")[2], str(landing["target"])
        if verb == "testing":
            self.has_tested = True
        elif verb == "requeued" and landing["code"] == "TARGET_RED":
            self._red_since.setdefault(target, entry.at)
        elif verb == "landed":
            self.first_result_at = self.first_result_at or entry.at
            self.landing_ms += self._period.overlap_ms(int(landing["submitted_at"]), entry.at)
            since = self._red_since.pop(target, None)
            if since is not None:
                self.red_ms += self._period.overlap_ms(since, entry.at)
        if verb == "landed" and self._period.has(entry.at):
            self.landed.append((entry.at, landing))
        elif verb == "bounced" and self._period.has(entry.at) and landing["code"] != "REJECTED":
            self.bounced.append((entry.at, landing))

    def _note(self, entry: JournalEntry) -> None:
        """Count what belongs to the instant at which it was written."""
        match entry.kind:
            case "task.added":
                facts = entry.facts()
                is_from_queue = str(facts.get("key") or "").startswith("bounce/")
                if not is_from_queue:  # the landing queue adds tasks, too, which no one requested
                    self.added.append(facts)
            case "task.taken":
                facts = entry.facts()
                self.taken.append((entry.at, str(facts["task"]), int(facts["attempt"])))
            case "duplicate.refused":
                self.refused.add(str(entry.facts()["title"]))
            case "rescue.saved":
                self.rescued.add(str(entry.facts()["rescue"]))
            case "decision.made":
                self.decisions.append(entry.facts()["spent_ms"])
            case "rescue.forgotten":  # it held nothing but what another one does
                self.rescued.discard(str(entry.facts()["rescue"]))
            case kind if kind.startswith("task."):
                facts = entry.facts()
                if facts.get("state") == DEAD:
                    self.dead.add(str(facts["task"]))
            case _:
                pass


def measure(
    period: Period,
    entries: Iterable[JournalEntry],
    usage: Sequence[UsageEntry],
    waiting_since: Iterable[int] = (),
    now: int = 0,
) -> Stats:
    """Return all metrics of a period from its `usage` and from sessions that are waiting `now`."""
    counts = PeriodCounts(period)
    for entry in entries:
        counts.add(entry)
    for since in waiting_since:
        counts.add_wait(since, now)
    counts.close()
    cost = add_up(usage)
    end = min(period.until, now + 1) if now else period.until
    days = tuple(days_between(_first_day(period, counts, usage), end))
    return Stats(
        period=period,
        metrics=_metrics(counts, cost, _unbooked(counts, usage), _failed_cost(counts, usage)),
        days=days,
        daily=_daily(days, counts, usage),
        cost=cost,
        kinds=_by_kind(counts, usage),
    )


def _metrics(counts: PeriodCounts, cost: Total, unbooked: int, failed: int) -> tuple[Metric, ...]:
    landed, bounced = len(counts.landed), len(counts.bounced)
    ended = landed + bounced
    conflicts = sum(landing["code"] == "CONFLICT" for _, landing in counts.bounced)
    similar = sum(bool(facts.get("similar")) for facts in counts.added)
    never_added = counts.refused - {str(facts["title"]) for facts in counts.added}
    duplicates, requests = similar + len(never_added), len(counts.added) + len(never_added)
    tasks = len({str(one["task"]) for _, one in counts.landed if one["task"]})
    active = {day_of(at) for at, _ in counts.landed} | {day_of(at) for at, _, _ in counts.taken}
    busy = active | {day_of(at) for at in counts.done.values()}
    metrics = (
        _count("tasks_landed", tasks),
        Metric(name="tasks_per_day", value=tasks / len(active) if active else 0),
        _count("changes_landed", landed),
        _rate("merge_success", landed, ended, "nothing landed or came back"),
        _rate("conflict_rate", conflicts, ended, "nothing landed or came back"),
        _rate("merged_cleanly", ended - conflicts, ended, "nothing landed or came back"),
        _count("conflicts_resolved", sum(len(one.get("resolved") or ()) for _, one in counts.landed)),
        _count("bounced", bounced),
        _rate("duplicate_rate", duplicates, requests, "no task was asked for"),
        _count("duplicates_stopped", len(never_added)),
        Metric(name="claim_wait", value=counts.waited_ms, numerator=counts.waits),
        _red(counts),
        _time_to_land(counts),
        _count("attempts", len(counts.taken)),
        _count("retries", sum(attempt > 1 for _, _, attempt in counts.taken)),
        _count("dead_letters", len(counts.dead)),
        _count("rescues", len(counts.rescued)),
        _count("decisions", len(counts.decisions)),
        _decision_time(counts),
        _cost(cost, unbooked),
        _cost_per("cost_per_landed", cost.cost_micros, _cost(cost, unbooked), landed),
        _cost_per("cost_per_landed_task", cost.cost_micros, _cost(cost, unbooked), tasks),
        _count("tasks_done", len(counts.done)),
        Metric(name="tasks_done_per_day", value=len(counts.done) / len(busy) if busy else 0),
        _overhead(counts),
        _per_task("decisions_per_task", len(counts.decisions), counts),
        _decision_time_per_task(counts),
        _cost_per(
            "cost_per_task", cost.cost_micros, _cost(cost, unbooked), len(counts.done), "no task was done"
        ),
        _setup_time(counts),
        _cost_per("failed_cost_per_task", failed, _cost(cost, unbooked), tasks),
    )
    assert [metric.name for metric in metrics] == list(DEFINITIONS)
    return metrics


def _count(name: str, number: int) -> Metric:
    return Metric(name=name, value=number)


def _rate(name: str, numerator: int, denominator: int, nothing: str) -> Metric:
    rate = numerator / denominator if denominator else None
    note = "" if denominator else f"{nothing} in the period"
    return Metric(name=name, value=rate, numerator=numerator, denominator=denominator, note=note)


def _red(counts: PeriodCounts) -> Metric:
    if not counts.has_tested and not counts.red_ms:
        return Metric(name="target_red", value=None, note="the queue has tested nothing so far")
    return Metric(name="target_red", value=counts.red_ms)


def _time_to_land(counts: PeriodCounts) -> Metric:
    lengths = sorted(at - int(landing["submitted_at"]) for at, landing in counts.landed)
    if not lengths:
        return Metric(name="time_to_land", value=None, note="nothing landed in the period")
    middle = len(lengths) // 2
    median = lengths[middle] if len(lengths) % 2 else (lengths[middle - 1] + lengths[middle]) // 2
    return Metric(name="time_to_land", value=max(0, median))


def _unbooked(counts: PeriodCounts, usage: Sequence[UsageEntry]) -> int:
    """Return how many attempts of the period have no usage entry, so that their cost is unknown."""
    booked = {(entry.task, entry.attempt) for entry in usage}
    without_attempt = {entry.task for entry in usage if not entry.attempt}
    return sum(
        task not in without_attempt and (task, attempt) not in booked for _, task, attempt in counts.taken
    )


def _cost(cost: Total, unbooked: int) -> Metric:
    missing = _missing(cost, unbooked)
    if cost.unknown == cost.entries:
        note = "; ".join(["nothing was booked in the period", missing][: 1 + bool(missing)])
        return Metric(name="cost", value=None, note=missing if cost.entries else note)
    return Metric(name="cost", value=cost.cost_micros, is_least=bool(missing), note=missing)


def _cost_per(name: str, micros: int, total: Metric, number: int, nothing: str = "nothing landed") -> Metric:
    """Return a share of the cost of a period per landed change or task."""
    if not number or total.value is None:
        note = total.note if number else f"{nothing} in the period"
        return Metric(name=name, value=None, denominator=number, note=note)
    return Metric(
        name=name,
        value=(2 * micros + number) // (2 * number),
        numerator=micros,
        denominator=number,
        is_least=total.is_least,
        note=total.note,
    )


def _failed_cost(counts: PeriodCounts, usage: Sequence[UsageEntry]) -> int:
    """Return what was booked to attempts after which the task was tried again or given up."""
    last: dict[str, int] = {}
    for _, task, attempt in counts.taken:
        last[task] = max(last.get(task, 0), attempt)
    failed = (
        entry.cost_micros or 0
        for entry in usage
        if entry.attempt and (entry.task in counts.dead or entry.attempt < last.get(entry.task, 0))
    )
    return sum(failed)


def _overhead(counts: PeriodCounts) -> Metric:
    """Return the share of coordination in the time that work took, in minutes."""
    waited = round((counts.waited_ms + counts.landing_ms) / _MINUTE_MS)
    worked = round(counts.worked_ms / _MINUTE_MS)
    exact = counts.waited_ms + counts.landing_ms + counts.worked_ms
    value = (counts.waited_ms + counts.landing_ms) / exact if exact else None
    note = "" if exact else "no task was worked on in the period"
    return Metric(
        name="coordination_overhead", value=value, numerator=waited, denominator=waited + worked, note=note
    )


def _per_task(name: str, number: int, counts: PeriodCounts) -> Metric:
    if not counts.done:
        return Metric(name=name, value=None, denominator=0, note="no task was done in the period")
    return Metric(name=name, value=number / len(counts.done), numerator=number, denominator=len(counts.done))


def _decision_time_per_task(counts: PeriodCounts) -> Metric:
    total = _decision_time(counts)
    if total.value is None or not counts.done:
        note = total.note or "no task was done in the period"
        return Metric(name="decision_time_per_task", value=None, is_least=total.is_least, note=note)
    share = total.value / len(counts.done)
    return Metric(name="decision_time_per_task", value=share, is_least=total.is_least, note=total.note)


def _setup_time(counts: PeriodCounts) -> Metric:
    """Return how long it took from the beginning to the first result."""
    if not counts.first_result_at:
        return Metric(name="setup_time", value=None, note="nothing is done so far")
    if not counts.is_in_period(counts.first_result_at):
        return Metric(name="setup_time", value=None, note="the first result was before the period")
    return Metric(name="setup_time", value=counts.first_result_at - counts.began_at)


def _by_kind(counts: PeriodCounts, usage: Sequence[UsageEntry]) -> tuple[KindTotal, ...]:
    """Return the tasks done and the cost by the kind of task."""
    tasks: dict[str, int] = {}
    for task in counts.done:
        kind = counts.kinds.get(task, "code")
        tasks[kind] = tasks.get(kind, 0) + 1
    costs: dict[str, int] = {}
    for entry in usage:
        if entry.task and entry.cost_micros is not None:
            kind = counts.kinds.get(entry.task, "code")
            costs[kind] = costs.get(kind, 0) + entry.cost_micros
    return tuple(
        KindTotal(kind=kind, tasks=tasks.get(kind, 0), cost_micros=costs.get(kind))
        for kind in sorted(tasks.keys() | costs.keys())
    )


def _decision_time(counts: PeriodCounts) -> Metric:
    """Return the time that people spent; a lower bound if that is unknown for some of their decisions."""
    known = [spent for spent in counts.decisions if spent is not None]
    unknown = len(counts.decisions) - len(known)
    note = f"the time of {unknown} of {len(counts.decisions)} decisions is unknown" if unknown else ""
    spent_ms = sum(known) if known or not unknown else None
    return Metric(name="decision_time", value=spent_ms, is_least=bool(unknown), note=note)


def _missing(cost: Total, unbooked: int) -> str:
    """Return what is missing from a sum, in words."""
    parts = [f"the cost of {cost.unknown} of {cost.entries} bookings is unknown"] if cost.unknown else []
    if cost.least:
        parts.append(f"{cost.least} of {cost.entries} bookings cost at least what they say")
    if unbooked:
        parts.append(f"{unbooked} {'attempt has' if unbooked == 1 else 'attempts have'} booked nothing")
    return "; ".join(parts)


def _first_day(period: Period, counts: PeriodCounts, usage: Sequence[UsageEntry]) -> int:
    """Return the first day shown: that of the period, or of the first entry when there is no start."""
    if period.since:
        return period.since
    instants = [at for at, _ in (*counts.landed, *counts.bounced)] + [at for at, _, _ in counts.taken]
    return min([*instants, *(entry.at for entry in usage)], default=period.until - 1)


def _daily(
    days: Sequence[str], counts: PeriodCounts, usage: Sequence[UsageEntry]
) -> dict[str, tuple[int, ...]]:
    series = {
        "changes_landed": [(at, 1) for at, _ in counts.landed],
        "bounced": [(at, 1) for at, _ in counts.bounced],
        "attempts": [(at, 1) for at, _, _ in counts.taken],
        "cost": [(one.at, one.cost_micros or 0) for one in usage],
    }
    return {name: _by_day(days, found) for name, found in series.items()}


def _by_day(days: Sequence[str], found: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    sums = dict.fromkeys(days, 0)
    for at, amount in found:
        day = day_of(at)
        if day in sums:
            sums[day] += amount
    return tuple(sums.values())


@value
class Inputs:
    """What metrics are computed from: entries of the journal, usage, and since when sessions wait."""

    entries: Sequence[JournalEntry]
    usage: Sequence[UsageEntry]
    waiting_since: Sequence[int]
    now: int

    def measure(self, period: Period) -> Stats:
        """Return all metrics of a period that these inputs cover."""
        usage = [entry for entry in self.usage if period.has(entry.at)]
        return measure(period, self.entries, usage, self.waiting_since, self.now)


def read_inputs(repo: Repository, period: Period) -> Inputs:
    """Return what the metrics of a period, and of parts of it, are computed from."""
    store = repo.store

    def look(snapshot: Snapshot) -> tuple[list[UsageEntry], list[int], int]:
        # A waiter without a recent sign of life has stopped waiting; the end of its wait is journaled.
        since = [waiter.since for waiter in list_waiters(snapshot) if not waiter.is_for_slot]
        return entries_in(snapshot, period), [store.wall_of(at) for at in since], store.wall_of(snapshot.now)

    booked, waiting_since, now = store.view(look)
    return Inputs(entries=list(read_entries(repo)), usage=booked, waiting_since=waiting_since, now=now)


def stats(repo: Repository, period: Period) -> Stats:
    """Return all metrics of a period."""
    return read_inputs(repo, period).measure(period)


def period_of(repo: Repository, since: str = "", until: str = "", default: str = "7d") -> Period:
    """Parse a period relative to now.

    Raises:
        Malformed: it cannot be read.
    """
    return read_period(since, until, repo.wall_ms(), default)
