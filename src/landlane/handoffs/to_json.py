"""The JSON form of handoffs, and their text for people."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.handoffs.model import is_unchanged
from landlane.handoffs.text import (
    escape_unprintable,
    format_collected_state,
    format_sender_fields,
    format_state,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.handoffs.model import Handoff

_UNLIMITED = 1_000_000


def handoff_json(handoff: Handoff) -> dict[str, Any]:
    """Return the JSON form of a handoff."""
    return {
        "id": handoff.id,
        "task": handoff.task,
        "state": handoff.state,
        "from": handoff.sender,
        "to": handoff.to,
        "attempt": handoff.attempt,
        "maximum": handoff.maximum,
        "product": handoff.product or None,
        "context": handoff.context or None,
        "constraints": list(handoff.constraints),
        "next": handoff.next or None,
        "blockers": list(handoff.blockers),
        "assumptions": list(handoff.assumptions),
        "fields": dict(handoff.fields),
        "taken": _taken_json(handoff),
        "hash": handoff.digest,
        "intact": is_unchanged(handoff),
        "sent": rfc3339(handoff.sent_at),
        "until": rfc3339(handoff.until),
        "declined_by": sorted(handoff.declined),
        "accepted_by": handoff.accepted_by or None,
        "accepted": rfc3339(handoff.accepted_at) if handoff.accepted_at else None,
        "why": handoff.why or None,
    }


def _taken_json(handoff: Handoff) -> dict[str, Any]:
    taken = dict(handoff.taken)
    commands = [{**one, "at": rfc3339(one["at"])} for one in taken.get("commands", ())]
    return {**taken, "commands": commands}


def handoff_text(handoff: Handoff, now: int) -> str:
    """Return a handoff as text for a person; `now` is wall-clock time."""
    lines = [
        f"{handoff.id}: {handoff.sender} hands {handoff.task} to {handoff.to}",
        f"  {format_state(handoff, now)}",
        f"  sent {rfc3339(handoff.sent_at)}, hash {handoff.digest[:16]}"
        + ("" if is_unchanged(handoff) else ", which does not fit: it was changed after it was sealed"),
        "",
        *format_sender_fields(handoff, _UNLIMITED),
        "",
        "Taken mechanically:",
        *(f"  {line}" for line in format_collected_state(handoff.taken) or ["nothing"]),
    ]
    return escape_unprintable("\n".join(lines))


def handoff_row(handoff: Handoff, now: int) -> list[str]:
    """Return a handoff as a row of a table."""
    state = format_state(handoff, now)
    return [handoff.id, handoff.task, handoff.sender, handoff.to, state, handoff.next]
