"""The public JSON form of landings and queues, and the text form of predicted conflicts."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.landing.model import Landing, Queue


def landing_json(landing: Landing) -> dict[str, Any]:
    """Return the JSON form of a queue entry."""
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
    """Return the JSON form of a queue."""
    return {
        "target": queue.target,
        "state": queue.state,
        "tip": queue.tip or None,
        "reason": queue.reason or None,
        "code": queue.code or None,
        "tests": queue.tests,
        "landed": queue.landed,
    }


def conflicts_text(prediction: Mapping[str, Any]) -> str:
    """Return predicted conflicts as text."""
    named = {
        entry["branch"]: f"{entry['branch']} ({entry['landing']})" if entry["landing"] else entry["branch"]
        for entry in prediction["branches"]
    }
    if not named:
        return f"no open branches on the way to {prediction['target']}"
    lines: list[str] = []
    for pair in prediction["conflicts"]:
        other = named.get(pair["other"], pair["other"])
        lines.append(f"{named[pair['one']]} and {other} conflict in {', '.join(pair['paths'])}")
    for file in prediction["hot"]:
        how = f", merged as {file['class']}" if file["class"] else ""
        lines.append(f"hot: {file['path']} ({file['branches']} branches, {file['conflicts']} conflicts{how})")
    lines = lines or ["no conflicts"]
    return "\n".join([*lines, "order: " + " ".join(named[branch] for branch in prediction["order"])])
