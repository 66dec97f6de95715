"""Fan-outs: a task split into branches, the policy that says how many must be done, and their results."""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed
from landlane.tasks.model import BLOCKED, DONE, FINISHED, READY
from landlane.text import list_some
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class FanState(StrEnum):
    """The state of a fan-out."""

    OPEN = "open"
    JOINED = "joined"
    ABANDONED = "abandoned"  # the task was taken out of its wait before its branches had ended


OPEN, JOINED, ABANDONED = FanState

# `Fan.become` makes every change and checks it here.
_TRANSITIONS: Mapping[FanState, Sequence[FanState]] = {
    OPEN: (JOINED, ABANDONED),
    JOINED: (),
    ABANDONED: (),
}

ALL, ANY, COLLECT = "all", "any", "collect"  # policies; the fourth is a number
DROP, KEEP = "drop", "keep"  # what happens to branches that are not started when the task is joined

NOT_STARTED = frozenset({READY, BLOCKED})  # such a branch can be dropped without losing work
LONGEST_RESULT = 4_000
_AT_LEAST = ("at least", "at-least", "at_least", "atleast", ">=")  # accepted before a number


@value
class Fan:
    """A split task and its branches. Instants are wall-clock milliseconds."""

    id: str
    task: str
    plan: str  # the digest of its plan
    title: str
    policy: str
    need: int  # how many branches must be done
    rest: str
    children: Sequence[str]  # in the order of the plan
    names: Sequence[str]
    agent: str
    session: str
    attempt: int
    begun_at: int
    deadline_at: int = 0  # 0: none
    state: FanState = OPEN
    is_settled: bool = False
    is_met: bool = False
    why: str = ""
    results: Sequence[Mapping[str, Any]] = ()  # as they were at the join, in the order of the plan
    joined_at: int = 0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Fan:
        """Return the fan-out that a record describes."""
        fields: dict[str, Any] = {**document, "state": FanState(document["state"])}
        return cls(**fields)

    def become(self, state: FanState, **changes: object) -> Fan:
        """Return the fan-out in another state, with some fields changed.

        Raises:
            ValueError: the transition table does not have this change.
        """
        if state not in _TRANSITIONS[self.state]:
            raise ValueError(f"{self.id} is {self.state} and cannot become {state}")
        return replace(self, state=state, **changes)


@value
class BranchResult:
    """The state of a branch, with its result or the reason why it failed."""

    task: str
    name: str
    state: str
    result: str = ""
    head: str = ""
    why: str = ""
    is_stuck: bool = False  # it waits for a branch that failed

    @property
    def is_done(self) -> bool:
        """Whether it succeeded."""
        return self.state == DONE

    @property
    def is_over(self) -> bool:
        """Whether its state will not change by itself any more."""
        return self.state in FINISHED or self.is_stuck

    @property
    def text(self) -> str:
        """Its result, or the reason for its state."""
        return self.result if self.is_done else self.why


@value
class JoinDecision:
    """A task is joined: whether its policy is met, and why."""

    is_met: bool
    why: str


def read_policy(text: str, count: int) -> tuple[str, int]:
    """Return a policy and the number of branches that it needs.

    Raises:
        Malformed: it is not a valid policy, or needs more branches than there are.
    """
    word = str(text).strip().lower() or ALL
    for lead in _AT_LEAST:
        word = word[len(lead) :].lstrip(" :=-_") if word.startswith(lead) else word
    if word in (ALL, ANY, COLLECT):
        return word, {ALL: count, ANY: 1, COLLECT: 0}[word]
    if not (word.isascii() and word.isdigit() and len(word) < 6 and int(word)):
        raise Malformed(
            f"--policy {str(text)[:40]} is not valid; use all, any, collect or a number",
            code="BAD_POLICY",
            hint="see what they mean: landlane help task split",
        )
    if int(word) > count:
        raise Malformed(
            f"--policy {word} needs more parts than the plan has ({count})",
            code="BAD_POLICY",
            hint="see what they mean: landlane help task split",
            unknown=str(text),
            meant=str(count),
        )
    return str(int(word)), int(word)


def decide_join(
    policy: str, need: int, branches: Sequence[BranchResult], *, is_late: bool
) -> JoinDecision | None:
    """Return a decision once enough branches are done, all are over, or the deadline has passed; else None.

    If the policy cannot be met any more, the join waits for the other branches nevertheless: a failing branch
    stops no other, and the join gets all results.
    """
    done = sum(branch.is_done for branch in branches)
    running = sum(not branch.is_over for branch in branches)
    if policy not in (ALL, COLLECT) and done >= need:
        return JoinDecision(is_met=True, why=f"{done} of {len(branches)} done, {need} needed")
    if running and not is_late:
        return None
    stuck = sum(branch.is_stuck for branch in branches)
    failed = len(branches) - done - running - stuck
    parts = [f"{done} of {len(branches)} done"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{stuck} waiting for what failed"] if stuck else []
    parts += [f"{running} not over at the deadline"] if running else []
    parts += [f"{need} needed"] if done < need else []
    return JoinDecision(is_met=done >= need, why=", ".join(parts))


def waiting_text(fan: Fan) -> str:
    """Return why a split task waits."""
    return f"waits for its parts {list_some(fan.children, 8)} ({fan.id})"


def is_waiting_for(why: str, fan_id: str) -> bool:
    """Return whether this reason is the one of `waiting_text`, so that no one blocked the task by hand."""
    starts = ("waits for its parts ", "waits for its branches ")  # the second in stores of the first edition
    return why.startswith(starts) and why.endswith(f"({fan_id})")


def results_text(fan: Fan, branches: Sequence[BranchResult], most: int) -> str:
    """Return all results and failures in order, for the next owner of the task."""
    head = f"{fan.id} joined ({fan.policy}): {fan.why}"
    share = max((most - len(head)) // max(len(branches), 1) - 4, 40)
    return _shorten("\n".join([head, *(_shorten(result_line(branch), share) for branch in branches)]), most)


def result_line(branch: BranchResult) -> str:
    """Return the result of a branch, or why it failed, in one line."""
    commit = f" at {branch.head[:12]}" if branch.head else ""
    text = f": {' '.join(branch.text.split())}" if branch.text else ""
    return f"{branch.task} {branch.name}: {branch.state}{commit}{text}"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
