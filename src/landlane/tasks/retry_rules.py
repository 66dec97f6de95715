"""Retry rules: whether a lineage gets another attempt, and when.

A lineage is a task with its retries, re-dispatches, children and follow-ups. Attempts, time and money are
counted over all of it, so that no new id begins a new budget. What repeats itself is stopped before that is
used up: the same feedback twice, two changes in turn, successes that change nothing.
"""

from __future__ import annotations

from landlane.ids import digest
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    from landlane.settings.model import Settings
    from landlane.tasks.model import Task

    T = TypeVar("T")

__all__ = ["AttemptEnd", "Decision", "Limits", "Lineage", "Verdict", "judge", "normalise"]

RETRY = "retry"
ESCALATE = "escalate"
ABORT = "abort"
RETURNED = "returned"

OPEN = "open"
HELD = "held"  # the shelf of lineages that have a task whose time has not come

RATE_LIMITED = "rate_limited"
STOPPED = "stopped"  # somebody wanted it to end
NO_CHANGE = "no_change"
TASK_OVER_BUDGET = "task_over_budget"  # what the task and its lineage may cost is used up
NOT_STARTED = "could not be started"
HANDED = "handed"  # its owner lets another go on
LOST = frozenset(
    {"killed", "lost", "vanished"}
)  # whoever looked after it is gone, and nothing is known of it

DEFAULT_ATTEMPTS = 10
_MOST_REMEMBERED = 200
_MOST_CHANGES = 8
_MOST_DELAYS = 20  # a rate limit ends some day; one that does not is for a person
_MOST_DOUBLINGS = 30


@value
class AttemptEnd:
    """How one attempt ended. `change` is a digest of the diff that it made, or nothing."""

    task: str
    attempt: int
    code: str
    feedback: str
    change: str = ""
    is_progress: bool = False
    took_ms: int = 0
    cost_micros: int | None = None  # unknown is not zero
    is_infrastructure: bool = False
    may_retry: bool = True
    retry_after_ms: int = 0
    kind: str = ""  # of agent, as far as it is known


@value
class Decision:
    """What follows: `retry`, `escalate`, `abort`, or `returned` when nobody is charged."""

    outcome: str
    task: Task
    why: str
    not_before: int = 0


@value
class Limits:
    """What a lineage may use, and how long to wait between its attempts."""

    attempts: int = DEFAULT_ATTEMPTS
    tasks: int = 60
    time_ms: int = 24 * 3_600_000
    cost_micros: int | None = None
    idle: int = 2
    starts: int = 5
    backoff_ms: int = 5_000
    backoff_cap_ms: int = 600_000


def limits_of(settings: Settings) -> Limits:
    """What the settings say."""
    return Limits(
        attempts=settings.retries.max_attempts,
        tasks=settings.retries.max_tasks,
        time_ms=settings.retries.max_time_ms,
        cost_micros=settings.retries.max_cost_micros,
        idle=settings.retries.max_idle,
        starts=settings.retries.max_starts,
        backoff_ms=settings.retries.backoff_ms,
        backoff_cap_ms=settings.retries.backoff_cap_ms,
    )


@value
class Lineage:
    """What was used by a lineage since a person last gave it a budget. Instants are the calendar's."""

    id: str
    state: str = OPEN
    attempts: int = 0  # those that did not get there
    limit: int = DEFAULT_ATTEMPTS  # of attempts, as the settings last said
    lapses: int = 0  # how many of them ended because their owner vanished
    took_ms: int = 0
    cost_micros: int = 0
    unknown_costs: int = 0  # attempts whose cost nobody knows
    width: int = 0  # the widest planned split: so many more tasks and attempts are no loop
    rounds: int = 0  # how often a person gave it another budget
    stopped: str = ""  # why the whole lineage gets no further attempts and no further tasks
    parked: Mapping[str, str] = {}  # task → why a person was asked
    held: Mapping[str, int] = {}  # task → the instant before which it is not offered
    uncharged: Mapping[str, int] = {}  # task → ends in a row that nobody was charged for
    idle: Mapping[str, int] = {}  # task → successes in a row that changed nothing
    feedback: Sequence[str] = ()  # digests of what was said, without noise
    changes: Mapping[str, Sequence[str]] = {}  # task → digests of its latest changes


@value
class Verdict:
    """What is to become of the task, and the lineage as it is then."""

    outcome: str
    lineage: Lineage
    why: str = ""
    not_before: int = 0
    is_failure: bool = False  # it counts among the task's own attempts
    is_lapse: bool = False


def backoff_ms(limits: Limits, count: int, chance: float) -> int:
    """How long to wait after so many ends in a row; `chance`, from 0 to 1, spreads them."""
    doubled = limits.backoff_ms * 2 ** min(max(count, 1) - 1, _MOST_DOUBLINGS)
    return round(min(doubled, limits.backoff_cap_ms) * (0.5 + chance / 2))


def cap_of(lineage: Lineage, limits: Limits, own: int = 0) -> int:
    """How many attempts a lineage has; a task that was given more by name has those."""
    return max(limits.attempts, own) + lineage.width


def judge(
    lineage: Lineage,
    task: Task,
    end: AttemptEnd,
    limits: Limits,
    *,
    now: int,
    chance: float,
    grace: int = 0,
    is_excused: bool = False,
) -> Verdict:
    """Whether a task is to be tried again after an attempt ended so. `grace` failures are not waited for.

    `is_excused`: the environment is known to be broken, and the pool waits for somebody to mend it.

    What was asked for ends nobody's budget; what could not begin, or was rate-limited, is charged to nobody
    but cannot go on for ever; all else is charged and compared with what was before.
    """
    lineage = _booked(lineage, end)
    if end.code == STOPPED:
        return Verdict(outcome=RETURNED, lineage=_unheld(lineage, task.id), why=end.feedback)
    if end.is_infrastructure and is_excused:
        wait = max(backoff_ms(limits, 1, chance), end.retry_after_ms)
        return _again(lineage, task.id, RETURNED, end.feedback, now, wait, is_failure=False)
    if end.is_infrastructure or end.code in (RATE_LIMITED, HANDED):
        return _uncharged(lineage, task, end, limits, now=now, chance=chance)
    cap = cap_of(lineage, limits, task.max_attempts)
    lineage = replace(
        lineage, attempts=lineage.attempts + 1, limit=cap, uncharged=_without(lineage.uncharged, task.id)
    )
    if end.code in LOST or (end.code == "died" and "SIGKILL" in end.feedback):
        return _lost(lineage, task, end)
    repeated, lineage = _repetition(lineage, task.id, end, limits)
    over = _over_budget(lineage, limits, cap)
    lineage = replace(lineage, stopped=lineage.stopped or over)
    failures = task.failures + 1
    if not end.may_retry:
        return _stop(lineage, task.id, ABORT, f"no further attempt will help: {end.feedback}")
    if failures >= task.max_attempts:
        words = f"attempt {failures} of {task.max_attempts}" if task.max_attempts > 1 else "its only attempt"
        return _stop(lineage, task.id, ABORT, f"{words} failed: {end.feedback}")
    spent = "its budget is used up" if end.code == TASK_OVER_BUDGET else ""
    why = repeated or over or lineage.stopped or spent
    if why:
        return _stop(lineage, task.id, ESCALATE, f"{why}. Last: {end.feedback or 'nothing was said'}")
    count = failures - grace
    wait = backoff_ms(limits, count, chance) if count > 0 else 0
    return _again(lineage, task.id, RETRY, end.feedback, now, max(wait, end.retry_after_ms), is_failure=True)


def _booked(lineage: Lineage, end: AttemptEnd) -> Lineage:
    is_unknown = end.cost_micros is None and end.took_ms > 0
    return replace(
        lineage,
        took_ms=lineage.took_ms + max(end.took_ms, 0),
        cost_micros=lineage.cost_micros + max(end.cost_micros or 0, 0),
        unknown_costs=lineage.unknown_costs + is_unknown,
    )


def _uncharged(
    lineage: Lineage, task: Task, end: AttemptEnd, limits: Limits, *, now: int, chance: float
) -> Verdict:
    count = lineage.uncharged.get(task.id, 0) + 1
    lineage = replace(lineage, uncharged={**lineage.uncharged, task.id: count})
    word, most = {
        RATE_LIMITED: ("was rate-limited", max(limits.starts, _MOST_DELAYS)),
        HANDED: ("was handed on", limits.attempts),
    }.get(end.code, (NOT_STARTED, limits.starts))
    if count >= most:
        why = f"it {word} {count} times in a row. Last: {end.feedback or end.code}"
        return replace(_stop(lineage, task.id, ESCALATE, why), is_failure=False)
    wait = 0 if end.code == HANDED else max(backoff_ms(limits, count, chance), end.retry_after_ms)
    return _again(lineage, task.id, RETURNED, end.feedback, now, wait, is_failure=False)


def _lost(lineage: Lineage, task: Task, end: AttemptEnd) -> Verdict:
    """Nothing was said that could be compared, and nobody is to blame; but it counts."""
    lineage = _unheld(replace(lineage, lapses=lineage.lapses + 1), task.id)
    if is_lost_for_good(lineage, task.lapses + 1):
        why = f"{task.lapses + 1} owners of it were lost. Last: {end.feedback}"
        return replace(_stop(lineage, task.id, ABORT, why), is_failure=False, is_lapse=True)
    return Verdict(outcome=RETRY, lineage=lineage, why=end.feedback, is_lapse=True)


MOST_LAPSES = 10  # a task that so many owners vanished over is put aside for a person to look at
_FEW_LAPSES = 3


def is_lost_for_good(lineage: Lineage, lapses: int) -> bool:
    """Whether a task that so many owners vanished over gets no further one.

    One crash of a machine ends all attempts on it at once: that alone stops no task.
    """
    return lapses > MOST_LAPSES or (lapses >= _FEW_LAPSES and lineage.attempts > lineage.limit)


def _repetition(lineage: Lineage, task_id: str, end: AttemptEnd, limits: Limits) -> tuple[str, Lineage]:
    """Why an attempt is a repetition of what was before, and the lineage that remembers it."""
    why = ""
    is_idle = end.code in ("", NO_CHANGE) and not end.change
    idle = lineage.idle.get(task_id, 0) + 1 if is_idle else 0
    if is_idle:
        if idle >= limits.idle:
            why = f"{idle} attempts in a row ended well and changed nothing"
        return why, replace(lineage, idle={**lineage.idle, task_id: idle})
    changes = [*lineage.changes.get(task_id, ()), end.change][-_MOST_CHANGES:] if end.change else []
    if _goes_in_circles(changes):
        why = (
            "its changes go to and fro"
            if changes[-1] != changes[-2]
            else "it made the same change three times"
        )
    said = sign_of(end.feedback)
    if said and said in lineage.feedback:
        why = "the same feedback came twice"
    remembered = [*lineage.feedback, said] if said and said not in lineage.feedback else lineage.feedback
    return why, replace(
        lineage,
        idle=_without(lineage.idle, task_id),
        changes={**lineage.changes, task_id: changes} if changes else lineage.changes,
        feedback=list(remembered)[-_MOST_REMEMBERED:],
    )


def normalise(feedback: str) -> str:
    """What was said, without what differs between two runs that say the same."""
    from landlane.tasks.normalize_output import normalise as without_noise  # noqa: PLC0415 - expensive, and only for failures

    return without_noise(feedback)


def sign_of(feedback: str) -> str:
    """By what feedback is known again; nothing for what says nothing."""
    said = normalise(feedback)
    return digest(said)[:20] if said else ""


def _goes_in_circles(changes: Sequence[str]) -> bool:
    if len(changes) >= 4 and changes[-4:-2] == changes[-2:] and changes[-1] != changes[-2]:
        return True
    return len(changes) >= 3 and len(set(changes[-3:])) == 1


def _over_budget(lineage: Lineage, limits: Limits, cap: int) -> str:
    if lineage.attempts >= cap:
        return f"all {cap} attempts of its lineage are used up"
    if lineage.took_ms >= limits.time_ms:
        return f"its lineage has taken {lineage.took_ms // 60_000} minutes, of {limits.time_ms // 60_000}"
    if limits.cost_micros is not None and lineage.cost_micros >= limits.cost_micros:
        spent, most = lineage.cost_micros / 1_000_000, limits.cost_micros / 1_000_000
        return f"its lineage has cost ${spent:.2f}, of ${most:.2f}"
    return ""


def _stop(lineage: Lineage, task_id: str, outcome: str, why: str) -> Verdict:
    lineage = _unheld(lineage, task_id)
    if outcome == ESCALATE:
        lineage = replace(lineage, parked={**lineage.parked, task_id: why[:400]})
    return Verdict(outcome=outcome, lineage=lineage, why=why, is_failure=True)


def _again(
    lineage: Lineage, task_id: str, outcome: str, why: str, now: int, wait_ms: int, *, is_failure: bool
) -> Verdict:
    until = now + wait_ms if wait_ms > 0 else 0
    held = {**lineage.held, task_id: until} if until else _without(lineage.held, task_id)
    lineage = with_held(lineage, held)
    return Verdict(outcome=outcome, lineage=lineage, why=why, not_before=until, is_failure=is_failure)


def with_held(lineage: Lineage, held: Mapping[str, int]) -> Lineage:
    """The lineage with these tasks held back, on the shelf where pickers look."""
    return replace(lineage, held=dict(held), state=HELD if held else OPEN)


def _unheld(lineage: Lineage, task_id: str) -> Lineage:
    return with_held(lineage, _without(lineage.held, task_id))


def forgotten(lineage: Lineage, task_id: str) -> Lineage:
    """The lineage when a task of it neither waits nor is asked about any more."""
    lineage = _unheld(lineage, task_id)
    return replace(
        lineage,
        parked=_without(lineage.parked, task_id),
        uncharged=_without(lineage.uncharged, task_id),
        idle=_without(lineage.idle, task_id),
        changes=_without(lineage.changes, task_id),
    )


def renewed(lineage: Lineage, task_id: str) -> Lineage:
    """The lineage with a fresh budget from a person: its history is in the journal, and stays there."""
    return replace(
        forgotten(lineage, task_id),
        attempts=0,
        lapses=0,
        took_ms=0,
        cost_micros=0,
        unknown_costs=0,
        rounds=lineage.rounds + 1,
        stopped="",
        feedback=(),
    )


def vanished(lineage: Lineage, task_id: str) -> Lineage:
    """The lineage when an owner of one of its tasks vanished."""
    return _unheld(replace(lineage, attempts=lineage.attempts + 1, lapses=lineage.lapses + 1), task_id)


def left(lineage: Lineage, task_id: str) -> Lineage:
    """The lineage when an owner of one of its tasks just left: charged to nobody, but counted."""
    count = lineage.uncharged.get(task_id, 0) + 1
    return replace(lineage, uncharged={**lineage.uncharged, task_id: count})


def is_left_for_good(lineage: Lineage, task_id: str) -> bool:
    """Whether a task that owner after owner walked away from gets no further one."""
    return lineage.uncharged.get(task_id, 0) > MOST_LAPSES


def _without(mapping: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: item for name, item in mapping.items() if name != key}
