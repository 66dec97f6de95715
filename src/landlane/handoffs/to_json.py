"""The JSON form of handoffs."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.handoffs.model import is_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.handoffs.json_types import CollectedStateJson, HandoffJson, RanCommandJson
    from landlane.handoffs.model import Handoff


def handoff_json(handoff: Handoff) -> HandoffJson:
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


def _taken_json(handoff: Handoff) -> CollectedStateJson:
    taken: Any = dict(handoff.taken)  # as `collect_state` returned it
    commands: list[RanCommandJson] = [
        {"command": one["command"], "exit": one["exit"], "at": rfc3339(one["at"])}
        for one in taken.get("commands", ())
    ]
    taken["commands"] = commands
    return taken
