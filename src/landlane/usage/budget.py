"""What was spent: bookings listed and added up, and which budget of a task is used up."""

from __future__ import annotations

from landlane.settings.value_readers import micros_from
from landlane.store import records
from landlane.tasks.rows import task_from, unknown_task
from landlane.usage.model import (
    Total,
    UsageEntry,
    add_up,
    add_up_by,
    attempt_key,
    counted,
    day_of,
    days_between,
    money_words,
    own_budget,
    price_of,
    usage_id,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from landlane.context import Context
    from landlane.protocol.worker.messages import Usage
    from landlane.store.interface import Reading
    from landlane.tasks.model import Task
    from landlane.usage.period import Period

NOUN = "usage"
_MOST_DAYS = 400  # for longer periods all bookings are read


@value
class Totals:
    """What was spent: either of `tasks` and `lineages` adds up to `grand`, together with `unattributed`."""

    grand: Total
    unattributed: Total
    tasks: Mapping[str, Total]
    lineages: Mapping[str, Total]


def task_in(reading: Reading, task_id: str) -> Task:
    """A task as it stands.

    Raises:
        Malformed: there is no such task.
    """
    row = reading.one("task_get", task=task_id)
    if row is None:
        raise unknown_task(task_id)
    return task_from(row)


def entries_in(reading: Reading, period: Period | None = None) -> list[UsageEntry]:
    """All bookings, or those of a period, in the order of their instants."""
    days: list[str] = []
    if period is not None and period.until - period.since < _MOST_DAYS * 86_400_000:
        days = days_between(period.since, period.until)
    found = (UsageEntry(**document) for document in records.all_of(reading, NOUN, days))
    kept = [one for one in found if period is None or period.has(one.at)]
    return sorted(kept, key=lambda one: (one.at, one.id))


def list_usage(context: Context, period: Period | None = None, task: str = "") -> list[UsageEntry]:
    """Bookings in order; those of one task, and those elsewhere that refer to it.

    Raises:
        Malformed: there is no such task.
    """

    def look(reading: Reading) -> list[UsageEntry]:
        if task:
            task_in(reading, task)
        found = entries_in(reading, period)
        return [one for one in found if task in (one.task, *one.links)] if task else found

    return context.store.view(look)


def totals(context: Context, since: int = 0, until: int | None = None) -> Totals:
    """What was spent from one instant of the calendar on, and before another."""
    from landlane.usage.period import Period  # noqa: PLC0415 - dates are dear to import

    period = Period(since=since, until=until) if until is not None else None
    found = context.store.view(lambda reading: entries_in(reading, period))
    return totals_of(one for one in found if one.at >= since)


def totals_of(entries: Iterable[UsageEntry]) -> Totals:
    """What these bookings add up to, by task and by lineage."""
    listed = list(entries)
    mine = [one for one in listed if one.task or one.lineage]
    return Totals(
        grand=add_up(listed),
        unattributed=add_up(one for one in listed if not one.task and not one.lineage),
        tasks=add_up_by(mine, lambda one: one.task or one.lineage),
        lineages=add_up_by(mine, lambda one: one.lineage or one.task),
    )


def spent(reading: Reading, *, lineage: str = "", run: str = "", day: str = "") -> Total:
    """What was spent by one lineage, by what one orchestrator started, or on one day."""
    if lineage:
        return add_up(_of_lineage(reading, lineage))
    if run:
        return add_up(_of_run(reading, run))
    return add_up(_of_day(reading, day))


def cost_of_attempt(context: Context, attempt_id: str) -> int | None:
    """What an attempt has cost, in millionths of a US dollar; nothing when nobody knows."""
    booking = usage_id(attempt_key(attempt_id))
    found = context.store.view(lambda reading: records.find(reading, NOUN, booking))
    return UsageEntry(**found).cost_micros if found is not None else None


def spent_today(context: Context) -> Total:
    """What was spent since midnight UTC."""

    def look(reading: Reading) -> Total:
        return add_up(_of_day(reading, day_of(context.store.wall_of(reading.now))))

    return context.store.view(look)


def _of_lineage(reading: Reading, lineage: str) -> list[UsageEntry]:
    return [UsageEntry(**document) for document in records.by_key(reading, NOUN, lineage)]


def _of_run(reading: Reading, run: str) -> list[UsageEntry]:
    return [one for one in entries_in(reading) if one.run == run]


def _of_day(reading: Reading, day: str) -> list[UsageEntry]:
    return [UsageEntry(**document) for document in records.all_of(reading, NOUN, [day])]


# ------------------------------------------------------------------------------------------------- budgets


ATTEMPT, TASK, RUN, TODAY = "attempt", "task", "run", "day"


@value
class Budget:
    """A limit, what counts against it, of what it is the budget, and how that is called."""

    kind: str
    limit: int
    spent: int
    words: str

    @property
    def why(self) -> str:
        """That it is used up, in words."""
        return f"{self.words}: {money_words(self.spent)} spent of {money_words(self.limit)}"


def why_over_budget(context: Context, task: Task, *, run: str = "", so_far: Usage | None = None) -> str:
    """Which budget of a task is used up, in words; empty when none is."""
    used_up = over_budget(context, task, run=run, so_far=so_far)
    return used_up.why if used_up is not None else ""


def over_budget(context: Context, task: Task, *, run: str = "", so_far: Usage | None = None) -> Budget | None:
    """Which budget of a task is used up, if one is.

    Asked before an attempt begins, and while it is at work, with what it used `so_far` if that was not noted.
    `run` names the orchestrator that asks, as its attempts do.
    """
    if not has_budget(context, task):
        return None
    return context.store.view(lambda reading: over_in(reading, context, task, run=run, so_far=so_far))


def over_in(
    reading: Reading, context: Context, task: Task, *, run: str = "", so_far: Usage | None = None
) -> Budget | None:
    """The same, as one transaction sees it."""
    found = _budgets_in(reading, context, task, run, so_far)
    return next((one for one in found if one.spent >= one.limit), None)


def has_budget(context: Context, task: Task) -> bool:
    """Whether anything limits what a task may cost."""
    settings = context.settings
    limits = (settings.budgets_task, settings.budgets_run, settings.budgets_day, own_budget(task))
    return any(limit is not None for limit in limits)


def left_for(context: Context, task: Task, *, run: str = "") -> int | None:
    """What an attempt at a task may cost now, in millionths of a US dollar; nothing without a limit."""
    found = context.store.view(lambda reading: _budgets_in(reading, context, task, run, None))
    left = [max(0, one.limit - one.spent) for one in found]
    own = own_budget(task)
    return min([*left, *([own] if own is not None else [])], default=None)


def _budgets_in(
    reading: Reading, context: Context, task: Task, run: str, so_far: Usage | None
) -> list[Budget]:
    if not has_budget(context, task):
        return []
    settings = context.settings
    family = _of_lineage(reading, task.lineage)

    def is_running(one: UsageEntry) -> bool:
        return not one.is_final and (one.task, one.attempt) == (task.id, task.attempt)

    noted = next((one for one in family if is_running(one)), None)
    more = _cost_so_far(context, noted, so_far)

    def budget(kind: str, limit: int, entries: Iterable[UsageEntry], words: str) -> Budget:
        # What the caller says of the running attempt is newer than what was noted of it.
        kept = (one for one in entries if not more or not is_running(one))
        return Budget(kind=kind, limit=limit, spent=counted(kept, settings) + more, words=words)

    found: list[Budget] = []
    rounds = _rounds(reading, task.lineage)
    own = own_budget(task)
    if own is not None:
        mine = [one for one in family if one.task == task.id]
        found.append(budget(ATTEMPT, own, filter(is_running, mine), f"the attempt at {task.id}"))
        tries = task.max_attempts * rounds
        found.append(budget(TASK, own * tries, mine, f"all {tries} attempts at {task.id}"))
    if settings.budgets_task is not None:
        words = f"{task.lineage} and what came of it ([budgets] task)"
        found.append(budget(TASK, settings.budgets_task * rounds, family, words))
    if settings.budgets_run is not None and run:
        found.append(budget(RUN, settings.budgets_run, _of_run(reading, run), "this run ([budgets] run)"))
    if settings.budgets_day is not None:
        today = _of_day(reading, day_of(context.store.wall_of(reading.now)))
        found.append(budget(TODAY, settings.budgets_day, today, "today, by UTC ([budgets] day)"))
    return found


def _rounds(reading: Reading, lineage: str) -> int:
    """How many budgets a lineage has: one, and another each time that a person lets it go on."""
    found = records.find(reading, "lineage", lineage)
    return 1 + int(found.get("rounds", 0)) if found is not None else 1


def _cost_so_far(context: Context, noted: UsageEntry | None, so_far: Usage | None) -> int:
    """What the running attempt has cost by the caller's word, or what was noted if that is more."""
    if so_far is None:
        return 0
    cost = micros_from(so_far.cost_usd)
    if cost is None:
        model = noted.model if noted is not None else ""
        cost = price_of(context.settings.prices, model, so_far.input_tokens, so_far.output_tokens)
    return max(cost or 0, (noted.cost_micros or 0) if noted is not None else 0)
