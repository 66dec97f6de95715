"""Split tasks and their branches: the JSON that every door answers with, and text for people."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.fanout.model import Branch, Fan


def fan_json(fan: Fan, branches: Sequence[Branch] = ()) -> dict[str, Any]:
    """A fan, with results and failures in the order of its plan."""
    return {
        "id": fan.id,
        "task": fan.task,
        "title": fan.title or None,
        "state": fan.state,
        "policy": fan.policy,
        "need": fan.need,
        "rest": fan.rest,
        "met": fan.is_met if fan.state == "joined" else None,
        "why": fan.why or None,
        "by": fan.agent,
        "branches": list(fan.children),
        "begun": rfc3339(fan.begun_at),
        "deadline": rfc3339(fan.deadline_at) if fan.deadline_at else None,
        "joined": rfc3339(fan.joined_at) if fan.joined_at else None,
        "results": [branch_json(one) for one in branches],
    }


def branch_json(one: Branch) -> dict[str, Any]:
    """How far one branch is, or what it brought."""
    return {
        "task": one.task,
        "name": one.name,
        "state": one.state,
        "ok": one.is_done,
        "over": one.is_over,
        "result": one.result or None,
        "head": one.head or None,
        "why": one.why or None,
    }


def fan_text(fan: Fan, branches: Sequence[Branch]) -> str:
    """A fan for people: how it stands, then a line for each branch."""
    until = f", until {rfc3339(fan.deadline_at)}" if fan.deadline_at else ""
    how = (
        fan.why if fan.state != "open" else f"{sum(one.is_over for one in branches)} of {len(branches)} over"
    )
    lines = [f"{fan.id} {fan.task} ({fan.policy}{until}): {fan.state}, {how}"]
    for one in branches:
        said = one.result if one.is_done else one.why
        lines.append(f"  {one.task} {one.name}: {one.state}" + (f": {said}" if said else ""))
    return "\n".join(lines)
