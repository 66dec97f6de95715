"""Fans: a task split into branches, the policy that says when they are enough, and what the join is given."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.tasks.model import BLOCKED, BRANCH_ENDED, DONE, READY
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


OPEN = "open"
JOINED = "joined"
ABANDONED = "abandoned"  # somebody took the task back before its branches had ended
ALL, ANY, COLLECT = "all", "any", "collect"
DROP, KEEP = "drop", "keep"

WAITING = frozenset({READY, BLOCKED})  # nobody has begun: can be dropped without loss
LONGEST_RESULT = 4_000


@value
class Fan:
    """A task and its branches. Instants are the calendar's, in milliseconds."""

    id: str
    task: str
    plan: str  # the digest of the plan that it was split by
    title: str
    policy: str
    need: int  # how many must be done
    rest: str  # what becomes of branches that nobody has begun when it is joined
    children: Sequence[str]  # in the order of the plan
    names: Sequence[str]
    agent: str
    session: str
    attempt: int
    begun_at: int
    deadline_at: int = 0  # 0: none
    state: str = OPEN
    is_settled: bool = False
    is_met: bool = False
    why: str = ""
    results: Sequence[Mapping[str, Any]] = ()  # as they were at the join, in the order of the plan
    joined_at: int = 0


@value
class Branch:
    """How far a branch is: done with a result, failed with a reason, or not over."""

    task: str
    name: str
    state: str
    result: str = ""
    head: str = ""
    why: str = ""
    is_stuck: bool = False  # it waits for one that failed

    @property
    def is_done(self) -> bool:
        """Whether it brought what it should."""
        return self.state == DONE

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it by itself."""
        return self.state in BRANCH_ENDED or self.is_stuck


_AT_LEAST = ("at least", "at-least", "at_least", "atleast", ">=")  # how people may say it before a number


@value
class Join:
    """It is decided: whether the policy is met, and why."""

    is_met: bool
    why: str


def read_policy(text: str, count: int) -> tuple[str, int]:
    """A policy and how many branches it needs.

    Raises:
        Malformed: it is no policy, or needs more branches than there are.
    """
    word = str(text).strip().lower() or ALL
    for lead in _AT_LEAST:
        word = word[len(lead) :].lstrip(" :=-_") if word.startswith(lead) else word
    if word in (ALL, ANY, COLLECT):
        return word, {ALL: count, ANY: 1, COLLECT: 0}[word]
    if not (word.isascii() and word.isdigit() and len(word) < 6 and int(word)):
        raise Malformed(
            f"{str(text)[:40]!r} is no policy",
            code="BAD_POLICY",
            hint="all, any, collect, or at least how many branches must be done, such as 2",
        )
    if int(word) > count:
        raise Malformed(
            f"{word} of {count} branches can never be done",
            code="BAD_POLICY",
            hint=f"ask for {count} at most",
        )
    return str(int(word)), int(word)


def check_rest(text: str) -> str:
    """What becomes of what nobody has begun.

    Raises:
        Malformed: it is neither.
    """
    if text not in (DROP, KEEP):
        raise Malformed(
            f"{text[:40]!r} is not known here", code="BAD_REST", hint="--rest drop, or --rest keep"
        )
    return text


def judge(policy: str, need: int, branches: Sequence[Branch], *, is_late: bool) -> Join | None:
    """Whether it is time to join: enough are done, none is left, or the deadline has passed.

    A policy that can no longer be met waits for the others all the same: one failing branch takes no other
    down, and the join is given all there is.
    """
    done = sum(one.is_done for one in branches)
    left = sum(not one.is_over for one in branches)
    if policy not in (ALL, COLLECT) and done >= need:
        return Join(is_met=True, why=f"{done} of {len(branches)} done, {need} needed")
    if left and not is_late:
        return None
    stuck = sum(one.is_stuck for one in branches)
    failed = len(branches) - done - left - stuck
    told = [f"{done} of {len(branches)} done"]
    told += [f"{failed} failed"] if failed else []
    told += [f"{stuck} waiting for what failed"] if stuck else []
    told += [f"{left} not over at the deadline"] if left else []
    told += [f"{need} needed"] if done < need else []
    return Join(is_met=done >= need, why=", ".join(told))


def waiting_text(fan_id: str, children: Sequence[str], most: int = 8) -> str:
    """Why a task waits that was split."""
    names = ", ".join(children[:most]) + (f" and {len(children) - most} more" if len(children) > most else "")
    return f"waits for its branches {names} ({fan_id})"


def is_waiting_for(why: str, fan_id: str) -> bool:
    """Whether a task waits for this fan and for nothing else that somebody said."""
    return why.startswith("waits for its branches ") and why.endswith(f"({fan_id})")


def results_text(fan: Fan, branches: Sequence[Branch], most: int) -> str:
    """All results and failures in order, for whoever goes on with the task."""
    head = f"{fan.id} joined ({fan.policy}): {fan.why}"
    share = max((most - len(head)) // max(len(branches), 1) - 4, 40)
    lines = [_short(_line(one), share) for one in branches]
    text = "\n".join([head, *lines])
    return text if len(text) <= most else text[: most - 1] + "…"


def _line(one: Branch) -> str:
    said = one.result if one.is_done else one.why
    commit = f" at {one.head[:12]}" if one.head else ""
    return f"{one.task} {one.name}: {one.state}{commit}" + (f": {' '.join(said.split())}" if said else "")


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
