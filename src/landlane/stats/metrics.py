"""The metrics of `stats`, with their units, names and definitions."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.usage.model import Total
    from landlane.usage.period import Period

COUNT, RATE, LENGTH, MONEY = "count", "rate", "ms", "usd"

# name → (unit, label, definition), in the order of the output.
DEFINITIONS: dict[str, tuple[str, str, str]] = {
    "tasks_landed": (
        COUNT,
        "tasks landed",
        "Tasks of which a change landed on the target in the period; each task counts once.",
    ),
    "tasks_per_day": (
        COUNT,
        "tasks landed per day",
        (
            "Tasks landed in the period, divided by the days (UTC) on which an agent took a task or a"
            " change landed."
        ),
    ),
    "changes_landed": (
        COUNT,
        "changes landed",
        "Entries of the landing queue that landed in the period, with or without a task.",
    ),
    "merge_success": (
        RATE,
        "merge success",
        (
            "Entries that landed, of all that landed or came back to their author in the period. What a"
            " person rejected or took out of the queue is not counted."
        ),
    ),
    "conflict_rate": (
        RATE,
        "conflict rate",
        (
            "Entries that came back because they clashed with what is on the target, of all that landed"
            " or came back in the period, as above."
        ),
    ),
    "merged_cleanly": (
        RATE,
        "merged without a conflict",
        (
            "Entries that did not come back because of a conflict, of all that landed or came back in"
            " the period, as above."
        ),
    ),
    "conflicts_resolved": (
        COUNT,
        "conflicts resolved by structure",
        "Conflicts in the changes that landed in the period that were resolved by the kind of the file.",
    ),
    "bounced": (
        COUNT,
        "bounced",
        (
            "Entries of the landing queue that came back to their author in the period; not those that"
            " a person rejected."
        ),
    ),
    "duplicate_rate": (
        RATE,
        "duplicate rate",
        (
            "Requests for a task that looked like the same work as an open one, refused or added"
            " anyway, of all requests for tasks in the period. A title that was refused and then added"
            " counts once. What the queue itself adds is not counted."
        ),
    ),
    "duplicates_stopped": (
        COUNT,
        "duplicates stopped",
        (
            "Requests for a task that were refused in the period because they looked like an open one,"
            " and were not added later."
        ),
    ),
    "claim_wait": (
        LENGTH,
        "waiting on claims",
        (
            "Time that agents waited for claims in the period, added up over all of them, including those"
            " who still wait. A refusal without waiting takes no time; waiting for a task is not counted."
        ),
    ),
    "target_red": (
        LENGTH,
        "target red",
        (
            "Time in the period from when the queue found the target itself failing its checks to the"
            " next change that landed on it. The target may have failed before the queue tested it."
        ),
    ),
    "time_to_land": (
        LENGTH,
        "time to land",
        "The median time from submitting to landing, of the changes that landed in the period.",
    ),
    "attempts": (
        COUNT,
        "attempts",
        "Times that an agent took a task in the period.",
    ),
    "retries": (
        COUNT,
        "retries",
        "Attempts in the period that were not the first at their task.",
    ),
    "dead_letters": (
        COUNT,
        "dead letters",
        "Tasks that were given up for good in the period: their attempts, money or time were used up.",
    ),
    "rescues": (
        COUNT,
        "rescues",
        (
            "Times in the period that work which existed nowhere else was saved before its checkout was"
            " removed."
        ),
    ),
    "decisions": (
        COUNT,
        "your decisions",
        (
            "Answers of people in the period: approvals, rejections, reviews, handoffs, and what"
            " becomes of failed tasks."
        ),
    ),
    "decision_time": (
        LENGTH,
        "time spent on decisions",
        (
            "Time from showing an item to a person to its answer, at most 15 minutes each. An answer"
            " without a showing takes an unknown time: then this is a lower bound."
        ),
    ),
    "cost": (
        MONEY,
        "cost",
        "All that was booked in the period: failed attempts and what belongs to no task included.",
    ),
    "cost_per_landed": (
        MONEY,
        "cost per landed change",
        (
            "The cost of the period, that of failed attempts and of what belongs to no task included,"
            " divided by the changes that landed in it."
        ),
    ),
    "cost_per_landed_task": (
        MONEY,
        "cost per landed task",
        "The cost of the period divided by the tasks that landed in it.",
    ),
    "tasks_done": (
        COUNT,
        "tasks done",
        (
            "Tasks that were done in the period, whatever their kind: what landed, chores and outputs;"
            " tasks of reviewers are not counted."
        ),
    ),
    "tasks_done_per_day": (
        COUNT,
        "tasks done per day",
        (
            "Tasks done in the period, divided by the days (UTC) on which an agent took a task, a task"
            " was done or a change landed."
        ),
    ),
    "coordination_overhead": (
        RATE,
        "coordination overhead",
        (
            "Minutes in the period that agents waited for claims and changes waited to land, of these"
            " minutes and those in which agents worked on tasks together. Work lasts from taking a task"
            " until it is reported, given back or done."
        ),
    ),
    "decisions_per_task": (
        COUNT,
        "your decisions per task",
        "Your decisions in the period divided by the tasks done in it.",
    ),
    "decision_time_per_task": (
        LENGTH,
        "time spent on decisions per task",
        "The time spent on decisions in the period divided by the tasks done in it.",
    ),
    "cost_per_task": (
        MONEY,
        "cost per task",
        "The cost of the period divided by the tasks done in it, of every kind.",
    ),
    "setup_time": (
        LENGTH,
        "setup time",
        (
            "Time from the first entry of the journal to the first task that was done or change that"
            " landed, if that was in the period."
        ),
    ),
    "failed_cost_per_task": (
        MONEY,
        "cost in failed attempts per landed task",
        (
            "The part of the cost per landed task that was booked to attempts after which the task was"
            " tried again or given up."
        ),
    ),
}


@value
class Metric:
    """One metric. `value` is None when it cannot be calculated; `note` has the reason or what is missing."""

    name: str
    value: float | None
    numerator: int | None = None
    denominator: int | None = None
    is_least: bool = False  # a lower bound: part of it is unknown
    note: str = ""


@value
class KindTotal:
    """The tasks of one kind that were done in a period, and what was booked for tasks of that kind."""

    kind: str
    tasks: int
    cost_micros: int | None  # None: nothing is known

    @property
    def cost_per_task(self) -> int | None:
        """The cost of a task of this kind, failed attempts included; None if it is unknown."""
        return None if self.cost_micros is None or not self.tasks else round(self.cost_micros / self.tasks)


@value
class Stats:
    """The metrics of a period, some of them day by day, and some by the kind of task."""

    period: Period
    metrics: tuple[Metric, ...]
    days: tuple[str, ...]
    daily: Mapping[str, tuple[int, ...]]
    cost: Total
    kinds: tuple[KindTotal, ...] = ()

    def metric(self, name: str) -> Metric:
        """Return one metric by its name."""
        return next(metric for metric in self.metrics if metric.name == name)
