"""Landings and queues as the JSON that every door answers with."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.landing.model import Landing, Queue


def landing_json(landing: Landing) -> dict[str, Any]:
    """An entry of the queue as every door shows it."""
    return {
        "id": landing.id,
        "state": landing.state,
        "branch": landing.branch,
        "head": landing.head,
        "target": landing.target,
        "commit": landing.commit or None,
        "agent": landing.agent,
        "session": landing.session,
        "role": landing.role or None,
        "task": landing.task or None,
        "subject": landing.subject,
        "paths": landing.paths,
        "stage": landing.stage or None,
        "base": landing.base or None,
        "reason": landing.reason or None,
        "code": landing.code or None,
        "output": landing.output or None,
        "pair": landing.pair or None,
        "advice": landing.advice or None,
        "gate": landing.gate or None,
        "approved_by": landing.approved_by or None,
        "unidentified": landing.unidentified,
        "flaky": landing.flaky,
        "notes": landing.notes,
        "bounce_task": landing.bounce_task or None,
        "submitted_at": rfc3339(landing.submitted_at),
        "ended_at": rfc3339(landing.ended_at) if landing.ended_at else None,
    }


def queue_json(queue: Queue) -> dict[str, Any]:
    """What is known of a target branch."""
    return {
        "target": queue.target,
        "state": queue.state,
        "tip": queue.tip or None,
        "reason": queue.reason or None,
        "code": queue.code or None,
        "tests": queue.tests,
        "landed": queue.landed,
    }


def conflicts_text(found: Mapping[str, Any]) -> str:
    """What open branches will do to each other, for people."""
    named = {
        one["branch"]: f"{one['branch']} ({one['landing']})" if one["landing"] else one["branch"]
        for one in found["branches"]
    }
    if not named:
        return f"no open branches on the way to {found['target']}"
    lines: list[str] = []
    for one in found["conflicts"]:
        other = named.get(one["other"], one["other"])
        lines.append(f"{named[one['one']]} and {other} conflict in {', '.join(one['paths'])}")
    for one in found["hot"]:
        how = f", merged as {one['class']}" if one["class"] else ""
        lines.append(f"hot: {one['path']} ({one['branches']} branches, {one['conflicts']} conflicts{how})")
    lines = lines or ["no conflicts"]
    return "\n".join([*lines, "order: " + " ".join(named[branch] for branch in found["order"])])
