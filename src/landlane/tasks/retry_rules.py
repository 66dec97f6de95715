"""Retry rules: whether a lineage gets another attempt, and when.

A lineage is a task with its retries, children and follow-ups. Attempts, time and money are counted over all
of it, so a new task does not begin with a new budget. Repetition stops it earlier: the same feedback twice,
two changes that alternate, or successes that change nothing.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.ids import digest
from landlane.units import exact_duration, money, money_limit
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeVar

    from landlane.settings.model import RetrySettings
    from landlane.tasks.model import Task

    T = TypeVar("T")


class RetryOutcome(StrEnum):
    """What happens to a task after an attempt ended."""

    RETRY = "retry"
    ESCALATE = "escalate"  # a person decides
    ABORT = "abort"
    RETURNED = "returned"  # back to the queue; the attempt is not charged


RETRY, ESCALATE, ABORT, RETURNED = RetryOutcome


class LineageState(StrEnum):
    """Where the record of a lineage is indexed, so that `next` finds the tasks that are held back."""

    OPEN = "open"
    HELD = "held"  # at least one task is held back


# Codes of ends that have rules of their own.
RATE_LIMITED = "rate_limited"
STOPPED = "stopped"  # on request
NO_CHANGE = "no_change"
TASK_OVER_BUDGET = "task_over_budget"
HANDED = "handed"  # the owner lets another session continue
LOST_CODES = frozenset({"killed", "lost", "vanished"})  # the supervisor is gone, and its results with it

NOT_STARTED = "could not be started"
DEFAULT_ATTEMPTS = 10
MOST_LAPSES = 10  # a task that lost more owners than this waits for a person
_FEW_LAPSES = 3
_MOST_REMEMBERED = 200
_MOST_CHANGES = 8
_MOST_DELAYS = 20  # rate limits in a row before a person is asked
_MOST_DOUBLINGS = 30


@value
class AttemptEnd:
    """How an attempt ended. `change` is a digest of its diff; empty when it changed nothing."""

    code: str
    feedback: str
    change: str = ""
    took_ms: int = 0
    cost_micros: int | None = None  # None: unknown
    is_infrastructure: bool = False
    may_retry: bool = True
    retry_after_ms: int = 0
    kind: str = ""  # of agent; empty when unknown


@value
class RetryDecision:
    """What was decided after an attempt ended, and the task afterwards."""

    outcome: RetryOutcome
    task: Task
    why: str
    not_before: int = 0


@value
class Lineage:
    """What a lineage has used since a person last gave it a budget. Times are wall-clock milliseconds."""

    id: str
    attempts: int = 0  # failed ones
    limit: int = DEFAULT_ATTEMPTS  # of attempts, according to the settings at the last end
    lapses: int = 0  # attempts that ended because their owner vanished
    took_ms: int = 0
    cost_micros: int = 0
    unknown_costs: int = 0  # attempts whose cost is not known
    width: int = 0  # branches of the widest planned split: so many more tasks and attempts are allowed
    rounds: int = 0  # how often a person gave it another budget
    stopped: str = ""  # why it gets no further attempts and tasks
    parked: Mapping[str, str] = {}  # task → why a person was asked
    held: Mapping[str, int] = {}  # task → when it is offered again
    uncharged: Mapping[str, int] = {}  # task → uncharged ends in a row
    idle: Mapping[str, int] = {}  # task → successes in a row that changed nothing
    feedback: Sequence[str] = ()  # digests of normalized feedback
    changes: Mapping[str, Sequence[str]] = {}  # task → digests of its latest changes

    @property
    def state(self) -> LineageState:
        return LineageState.HELD if self.held else LineageState.OPEN

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Lineage:
        """Return the lineage that a record describes."""
        return cls(**{name: field for name, field in document.items() if name != "state"})

    def to_document(self) -> dict[str, object]:
        """Return the fields as they are stored in a record."""
        return {"id": self.id, "state": self.state, **as_dict(self)}


@value
class RetryVerdict:
    """What the rules say about the end of an attempt, and the lineage afterwards."""

    outcome: RetryOutcome
    lineage: Lineage
    why: str = ""
    not_before: int = 0
    is_failure: bool = False  # it counts as one of the task's own attempts
    is_lapse: bool = False


def backoff_ms(limits: RetrySettings, count: int, chance: float) -> int:
    """Return how long to wait after `count` ends in a row; `chance`, from 0 to 1, adds jitter."""
    doubled = limits.backoff_ms * 2 ** min(max(count, 1) - 1, _MOST_DOUBLINGS)
    return round(min(doubled, limits.backoff_cap_ms) * (0.5 + chance / 2))


def attempt_limit(lineage: Lineage, limits: RetrySettings, own: int = 0) -> int:
    """Return how many attempts a lineage has; `own` is the limit of the task itself."""
    return max(limits.max_attempts, own) + lineage.width


def decide_retry(
    lineage: Lineage,
    task: Task,
    end: AttemptEnd,
    limits: RetrySettings,
    *,
    now: int,
    chance: float,
    immediate_retries: int = 0,
    is_pool_paused: bool = False,
) -> RetryVerdict:
    """Decide whether a task is tried again after an attempt ended; the first failures may skip the back-off.

    A requested end costs nothing. An attempt that could not start, was rate-limited or handed over is not
    charged, but may not repeat without limit. Everything else is charged and compared with earlier ends.
    """
    lineage = _add_usage(lineage, end)
    if end.code == STOPPED:
        return RetryVerdict(outcome=RETURNED, lineage=_stop_holding(lineage, task.id), why=end.feedback)
    if end.is_infrastructure and is_pool_paused:
        wait = max(backoff_ms(limits, 1, chance), end.retry_after_ms)
        return _try_again(lineage, task.id, RETURNED, end.feedback, now, wait)
    if end.is_infrastructure or end.code in (RATE_LIMITED, HANDED):
        return _decide_uncharged(lineage, task, end, limits, now=now, chance=chance)
    cap = attempt_limit(lineage, limits, task.max_attempts)
    uncharged = _without(lineage.uncharged, task.id)
    lineage = replace(lineage, attempts=lineage.attempts + 1, limit=cap, uncharged=uncharged)
    if end.code in LOST_CODES or (end.code == "died" and "SIGKILL" in end.feedback):
        return _decide_lost(lineage, task, end)
    repeated, lineage = _find_repetition(lineage, task.id, end, limits)
    over = _over_budget(lineage, limits, cap)
    lineage = replace(lineage, stopped=lineage.stopped or over)
    failures = task.failures + 1
    if not end.may_retry:
        return _stop(lineage, task.id, ABORT, f"no further attempt will help: {end.feedback}")
    if failures >= task.max_attempts:
        words = f"attempt {failures} of {task.max_attempts}" if task.max_attempts > 1 else "its only attempt"
        outcome = ESCALATE if limits.last == "ask" else ABORT
        return _stop(lineage, task.id, outcome, f"{words} failed: {end.feedback}")
    spent = "its budget is used up" if end.code == TASK_OVER_BUDGET else ""
    why = repeated or over or lineage.stopped or spent
    if why:
        return _stop(lineage, task.id, ESCALATE, f"{why}. Last: {end.feedback or 'no reason given'}")
    count = failures - immediate_retries
    wait = max(backoff_ms(limits, count, chance) if count > 0 else 0, end.retry_after_ms)
    return _try_again(lineage, task.id, RETRY, end.feedback, now, wait, is_failure=True)


def _add_usage(lineage: Lineage, end: AttemptEnd) -> Lineage:
    is_unknown = end.cost_micros is None and end.took_ms > 0
    return replace(
        lineage,
        took_ms=lineage.took_ms + max(end.took_ms, 0),
        cost_micros=lineage.cost_micros + max(end.cost_micros or 0, 0),
        unknown_costs=lineage.unknown_costs + is_unknown,
    )


def _decide_uncharged(
    lineage: Lineage, task: Task, end: AttemptEnd, limits: RetrySettings, *, now: int, chance: float
) -> RetryVerdict:
    lineage = after_owner_left(lineage, task.id)
    count = lineage.uncharged[task.id]
    word, most = {
        RATE_LIMITED: ("was rate-limited", max(limits.max_starts, _MOST_DELAYS)),
        HANDED: ("was handed on", limits.max_attempts),
    }.get(end.code, (NOT_STARTED, limits.max_starts))
    if count >= most:
        why = f"it {word} {count} times in a row. Last: {end.feedback or end.code}"
        return replace(_stop(lineage, task.id, ESCALATE, why), is_failure=False)
    wait = 0 if end.code == HANDED else max(backoff_ms(limits, count, chance), end.retry_after_ms)
    return _try_again(lineage, task.id, RETURNED, end.feedback, now, wait)


def _decide_lost(lineage: Lineage, task: Task, end: AttemptEnd) -> RetryVerdict:
    """Decide about a lost attempt: it counts for the lineage, but left nothing that could be compared."""
    lineage = _stop_holding(replace(lineage, lapses=lineage.lapses + 1), task.id)
    if is_lost_for_good(lineage, task.lapses + 1):
        why = f"{task.lapses + 1} owners of it were lost. Last: {end.feedback}"
        return replace(_stop(lineage, task.id, ABORT, why), is_failure=False, is_lapse=True)
    return RetryVerdict(outcome=RETRY, lineage=lineage, why=end.feedback, is_lapse=True)


def is_lost_for_good(lineage: Lineage, lapses: int) -> bool:
    """Return whether a task that lost so many owners gets no further one.

    One crash of a machine ends all attempts on it at once, so a few losses alone stop no task.
    """
    return lapses > MOST_LAPSES or (lapses >= _FEW_LAPSES and lineage.attempts > lineage.limit)


def _find_repetition(
    lineage: Lineage, task_id: str, end: AttemptEnd, limits: RetrySettings
) -> tuple[str, Lineage]:
    """Return how an attempt repeats earlier ones (empty: it does not), and the lineage that remembers it."""
    why = ""
    if end.code in ("", NO_CHANGE) and not end.change:
        idle = lineage.idle.get(task_id, 0) + 1
        if idle >= limits.max_idle:
            why = f"it succeeded {idle} times in a row without a change"
        return why, replace(lineage, idle={**lineage.idle, task_id: idle})
    changes = [*lineage.changes.get(task_id, ()), end.change][-_MOST_CHANGES:] if end.change else []
    if changes[-4:-2] == changes[-2:] and len(set(changes[-2:])) == 2:
        why = "its changes alternate between two versions"
    elif len(changes) >= 3 and len(set(changes[-3:])) == 1:
        why = "it made the same change three times"
    normalized = normalize(end.feedback)
    fingerprint = digest(normalized)[:20] if normalized else ""
    remembered = lineage.feedback
    if fingerprint and fingerprint in remembered:
        why = "it failed twice the same way"
    elif fingerprint:
        remembered = [*remembered, fingerprint]
    return why, replace(
        lineage,
        idle=_without(lineage.idle, task_id),
        changes={**lineage.changes, task_id: changes} if changes else lineage.changes,
        feedback=list(remembered)[-_MOST_REMEMBERED:],
    )


def normalize(feedback: str) -> str:
    """Return feedback without the parts that differ between two runs that fail for the same reason."""
    from landlane.tasks import normalize_output  # noqa: PLC0415 - its patterns are expensive to compile

    return normalize_output.normalize(feedback)


def _over_budget(lineage: Lineage, limits: RetrySettings, cap: int) -> str:
    if lineage.attempts >= cap:
        return f"all {cap} attempts are used up"
    if lineage.took_ms >= limits.max_time_ms:
        return f"it has taken {exact_duration(lineage.took_ms)} of {exact_duration(limits.max_time_ms)}"
    if limits.max_cost_micros is not None and lineage.cost_micros >= limits.max_cost_micros:
        return f"it has cost {money(lineage.cost_micros)} of {money_limit(limits.max_cost_micros)}"
    return ""


def _stop(lineage: Lineage, task_id: str, outcome: RetryOutcome, why: str) -> RetryVerdict:
    lineage = _stop_holding(lineage, task_id)
    if outcome == ESCALATE:
        lineage = replace(lineage, parked={**lineage.parked, task_id: why[:400]})
    return RetryVerdict(outcome=outcome, lineage=lineage, why=why, is_failure=True)


def _try_again(
    lineage: Lineage,
    task_id: str,
    outcome: RetryOutcome,
    why: str,
    now: int,
    wait_ms: int,
    *,
    is_failure: bool = False,
) -> RetryVerdict:
    until = now + wait_ms if wait_ms > 0 else 0
    held = {**lineage.held, task_id: until} if until else _without(lineage.held, task_id)
    lineage = replace(lineage, held=held)
    return RetryVerdict(outcome=outcome, lineage=lineage, why=why, not_before=until, is_failure=is_failure)


def _stop_holding(lineage: Lineage, task_id: str) -> Lineage:
    return replace(lineage, held=_without(lineage.held, task_id))


def without_task(lineage: Lineage, task_id: str) -> Lineage:
    """Return the lineage when one of its tasks neither waits for its time nor for a person any more."""
    return replace(
        lineage,
        held=_without(lineage.held, task_id),
        parked=_without(lineage.parked, task_id),
        uncharged=_without(lineage.uncharged, task_id),
        idle=_without(lineage.idle, task_id),
        changes=_without(lineage.changes, task_id),
    )


def with_new_budget(lineage: Lineage, task_id: str) -> Lineage:
    """Return the lineage with a new budget from a person; its history stays in the journal."""
    return replace(
        without_task(lineage, task_id),
        attempts=0,
        lapses=0,
        took_ms=0,
        cost_micros=0,
        unknown_costs=0,
        rounds=lineage.rounds + 1,
        stopped="",
        feedback=(),
    )


def after_lost_owner(lineage: Lineage, task_id: str) -> Lineage:
    """Return the lineage after an owner of one of its tasks vanished."""
    return _stop_holding(replace(lineage, attempts=lineage.attempts + 1, lapses=lineage.lapses + 1), task_id)


def after_owner_left(lineage: Lineage, task_id: str) -> Lineage:
    """Return the lineage after one more uncharged end in a row, such as an owner that left."""
    count = lineage.uncharged.get(task_id, 0) + 1
    return replace(lineage, uncharged={**lineage.uncharged, task_id: count})


def is_left_for_good(lineage: Lineage, task_id: str) -> bool:
    """Return whether a task that so many owners left gets no further one."""
    return lineage.uncharged.get(task_id, 0) > MOST_LAPSES


def _without(mapping: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: item for name, item in mapping.items() if name != key}
