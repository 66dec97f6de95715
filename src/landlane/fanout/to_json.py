"""Split tasks and their branches as JSON and text."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.fanout.model import JOINED, OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.fanout.model import BranchResult, Fan


def fan_json(fan: Fan, branches: Sequence[BranchResult] = ()) -> dict[str, Any]:
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


def fan_text(fan: Fan, branches: Sequence[BranchResult]) -> str:
    """Return a fan-out as text, with a line for each branch."""
    until = f", until {rfc3339(fan.deadline_at)}" if fan.deadline_at else ""
    progress = f"{sum(branch.is_over for branch in branches)} of {len(branches)} over"
    summary = progress if fan.state == OPEN else fan.why
    lines = [f"{fan.id} {fan.task} ({fan.policy}{until}): {fan.state}, {summary}"]
    for branch in branches:
        text = f": {branch.text}" if branch.text else ""
        lines.append(f"  {branch.task} {branch.name}: {branch.state}{text}")
    return "\n".join(lines)
