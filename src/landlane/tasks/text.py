"""Tasks in words, for people: their state, their attempts, and what they wait for."""

from __future__ import annotations

from landlane.tasks.model import DEAD, FAILED, READY, WAITING, TaskState, WaitKind
from landlane.units import count, join_words, time_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.tasks.evidence import Completion
    from landlane.tasks.model import Task, Wait
    from landlane.tasks.pick import NothingReady

NEEDS_YOU = "needs-you"  # how people name the state in a command
_MOST_LINES = 5  # of the output of a check
_ENDED_BADLY = frozenset({FAILED, DEAD})


def state_text(state: str, *, is_person: bool = True) -> str:
    """Return the state of a task as people read it."""
    if state != WAITING:
        return str(state)
    return "needs you" if is_person else "needs a person"


def read_state(text: str) -> TaskState | None:
    """Return the state that a person names; None when there is none of this name."""
    word = text.strip().lower().replace(" ", "-")
    if word in (NEEDS_YOU, "needs-a-person"):
        return WAITING
    return next((state for state in TaskState if state == word.replace("-", "_")), None)


def tries_text(task: Task) -> str:
    """Return the attempts that count, of those allowed: `2/3`; empty before the first."""
    return f"{task.tries}/{task.max_attempts}" if task.tries else ""


def attempt_text(task: Task) -> str:
    """Return the present attempt in words: `attempt 2 of 3`."""
    return f"attempt {max(task.tries, 1)} of {task.max_attempts}"


def waits_text(waits: Sequence[Wait], now: int, *, is_person: bool = True) -> str:
    """Return what a task waits for in one line; `now` is wall-clock time."""
    return ", ".join(_wait_text(wait, now, "you" if is_person else "a person") for wait in waits)


def _wait_text(wait: Wait, now: int, person: str) -> str:
    if wait.kind == WaitKind.DECISION:
        return f"{person}: retry or drop"
    if wait.needs_person:
        return f"{person}: {wait.id}"
    if wait.kind == WaitKind.CLAIM:
        return f"{wait.path}, claimed by {wait.holder}"
    if wait.kind in (WaitKind.HANDOFF, WaitKind.REVIEW) and wait.holder:
        return f"{wait.holder}: {wait.id}"
    if wait.kind == WaitKind.LIMIT:
        return limit_text(wait, now, ", ")
    if wait.kind == WaitKind.RETRY:
        return f"retry {time_left(wait.until - now)}"
    return wait.id or wait.why


def limit_text(wait: Wait, now: int, separator: str = " ") -> str:
    """Return a provider's limit: `Claude limit resets in 12 min`, or our own retry if the end is unknown."""
    name = f"{wait.holder[:1].upper()}{wait.holder[1:]} limit"
    if wait.resets_at > now:
        return f"{name}{separator}resets {time_left(wait.resets_at - now)}"
    return f"{name}, retry {time_left(wait.until - now)}"


def count_text(tasks: Sequence[Task]) -> str:
    """Return how many of these tasks are open, failed, done and dropped: `10 open, 11 done`."""
    amounts = {"open": 0, "failed": 0, "done": 0, "dropped": 0}
    for task in tasks:
        name = "failed" if task.state in _ENDED_BADLY else str(task.state)
        amounts[name if name in amounts else "open"] += 1
    return ", ".join(f"{amount:,} {name}" for name, amount in amounts.items() if amount)


def why_no_task(nothing: NothingReady) -> str:
    """Return why there is no task to take."""
    if nothing.in_hand:
        return f"{join_words(nothing.in_hand)} {_is(nothing.in_hand)} yours already"
    reasons = [
        _ready_but(len(nothing.held_up), "waits for a claimed path", "wait for claimed paths"),
        _ready_but(
            len(nothing.held_back), "failed and is tried again later", "failed and are tried again later"
        ),
        _ready_but(len(nothing.over_budget), "is over its budget", "are over their budget"),
    ]
    found = [reason for reason in reasons if reason]
    if not found and READY in nothing.counts:
        found = [_ready_but(nothing.counts[READY], "is for another agent", "are for other agents")]
    if not found:
        found = [_in_state(state, number) for state, number in nothing.counts.items()]
    return ", ".join(found) or "there are no open tasks"


def _in_state(state: str, number: int) -> str:
    text = state_text(state, is_person=False)
    return f"{number:,} {text if number == 1 else text.replace('needs ', 'need ')}"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _ready_but(number: int, one: str, many: str) -> str:
    return f"{count(number, 'ready task')} {one if number == 1 else many}" if number else ""


def held_up_lines(held_up: Sequence[tuple[Task, Sequence[Wait]]], now: int) -> list[str]:
    """Return the tasks that are ready except for one thing, a line each; `now` is wall-clock time."""
    return [f"{task.id} {task.title}: {_held_up_text(waits, now)}" for task, waits in held_up]


def _held_up_text(waits: Sequence[Wait], now: int) -> str:
    claims = [wait for wait in waits if wait.kind == WaitKind.CLAIM]
    if claims:
        return f"{claims[0].path} is claimed by {claims[0].holder}"
    return waits_text(waits, now, is_person=False) or "its paths are claimed"


def evidence_lines(completion: Completion) -> list[str]:
    """Return what was verified, what is missing and what was not looked at, a line each."""
    found = [
        (("✓" if item.is_seen else "✗"), item.name, *item.found.split("\n")) for item in completion.evidence
    ]
    lines = [(mark, name, first, rest[-_MOST_LINES:]) for mark, name, first, *rest in found]
    lines += [("–", name, "not run", []) for name in completion.not_run]
    return [
        line
        for mark, name, first, rest in lines
        for line in (f"  {mark} {name:<8} {first}", *(f"      {text}" for text in rest))
    ]
