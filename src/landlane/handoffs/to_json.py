"""Handoffs as the JSON that every door answers with, and as text for people."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.handoffs.model import is_whole
from landlane.handoffs.text import plain, tell_said, tell_standing, tell_taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.handoffs.model import Handoff

_WHOLE = 1_000_000  # a person who asks for it is shown all of it


def handoff_json(handoff: Handoff) -> dict[str, Any]:
    """A handoff as programs read it."""
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
        "intact": is_whole(handoff),
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
    """A handoff as a person reads it; `now` is the calendar's."""
    standing = tell_standing(handoff, rfc3339(handoff.until), now)
    lines = [
        f"{handoff.id}: {handoff.sender} hands {handoff.task} to {handoff.to}",
        f"  {standing}",
        f"  sent {rfc3339(handoff.sent_at)}, hash {handoff.digest[:16]}"
        + ("" if is_whole(handoff) else ", which does not fit: it was changed after it was sealed"),
        "",
        *tell_said(handoff, _WHOLE),
        "",
        "Taken mechanically:",
        *(f"  {line}" for line in tell_taken(handoff.taken) or ["nothing"]),
    ]
    return plain("\n".join(lines))


def handoff_row(handoff: Handoff, now: int) -> list[str]:
    """A handoff as a line of a table."""
    standing = tell_standing(handoff, rfc3339(handoff.until), now)
    return [handoff.id, handoff.task, handoff.sender, handoff.to, standing, handoff.next]
