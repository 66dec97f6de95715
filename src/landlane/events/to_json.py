"""Events as the JSON and the line that every door, every command and every webhook gets."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.events.model import Event


def event_json(event: Event) -> dict[str, Any]:
    """An event as programs read it."""
    return {
        "id": event.id,
        "kind": event.kind,
        "text": event.text,
        "at": rfc3339(event.at),
        "facts": dict(event.facts),
        "sent": {
            name: {"state": one["state"], "tries": one["tries"], "why": one["why"] or None}
            for name, one in event.channels.items()
        },
    }


def notice_json(event: Event, repository: str) -> dict[str, Any]:
    """An event as those outside get it, who may hear of several repositories."""
    shown = event_json(event)
    del shown["sent"]
    return {**shown, "repository": repository}


def event_line(event: Event) -> str:
    """An event for people, in a line."""
    return f"{rfc3339(event.at)}  {event.id:<5} {event.kind:<14} {event.text}"
