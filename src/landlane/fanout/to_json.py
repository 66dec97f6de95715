"""Split tasks and their branches as JSON and text."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.fanout.model import COLLECT, JOINED, OPEN
from landlane.units import count, time_ago, time_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.fanout.json_types import SplitTaskJson
    from landlane.fanout.model import BranchResult, Fan

_HALF_MINUTE = 30_000  # a deadline that was just set is not shown a unit shorter


def fan_json(fan: Fan, branches: Sequence[BranchResult] = ()) -> SplitTaskJson:
    """Return a fan-out as JSON, with results and failures in the order of its plan."""
    return {
        "id": fan.id,
        "task": fan.task,
        "title": fan.title or None,
        "state": fan.state,
        "policy": fan.policy,
        "need": fan.need,
        "rest": fan.rest,
        "met": fan.is_met if fan.state == JOINED else None,
        "why": fan.why or None,
        "by": fan.agent,
        "branches": list(fan.children),
        "begun": rfc3339(fan.begun_at),
        "deadline": rfc3339(fan.deadline_at) if fan.deadline_at else None,
        "joined": rfc3339(fan.joined_at) if fan.joined_at else None,
        "results": [
            {
                "task": branch.task,
                "name": branch.name,
                "state": branch.state,
                "ok": branch.is_done,
                "over": branch.is_over,
                "result": branch.result or None,
                "head": branch.head or None,
                "why": branch.why or None,
            }
            for branch in branches
        ],
    }


def condition_text(fan: Fan, now: int) -> str:
    """Return when a split task continues: `when all 3 are done`; `now` is wall-clock time."""
    total = len(fan.children)
    if fan.policy == COLLECT:
        text = f"when all {total} have ended"
    elif fan.need == total:
        text = f"when all {total} are done" if total > 1 else "when it is done"
    else:
        text = f"when {fan.need} of {total} {'is' if fan.need == 1 else 'are'} done"
    return f"{text}, or {time_left(fan.deadline_at - now + _HALF_MINUTE)}" if fan.deadline_at else text


def fan_lines(fan: Fan, branches: Sequence[BranchResult], now: int) -> list[str]:
    """Return a split task as lines: where it stands, and each part; `now` is wall-clock time."""
    done = f"{sum(branch.is_done for branch in branches)} of {count(len(branches), 'part')} done"
    standing = f"{done}; continues {condition_text(fan, now)}"
    if fan.state == JOINED:
        standing = f"joined {time_ago(fan.joined_at, now)}: {fan.why}"
    elif fan.state != OPEN:
        standing = f"{fan.state}: {fan.why}"
    lines = [f"{fan.task} {fan.title}".rstrip() + f": {standing}"]
    width = max((len(branch.task) for branch in branches), default=0)
    for branch in branches:
        text = f": {branch.text}" if branch.text else ""
        lines.append(f"  {branch.task:<{width}}  {branch.name} ({branch.state}){text}")
    return lines
