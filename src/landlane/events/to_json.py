"""Format events as JSON and as lines of text."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.events.json_types import EventJson
    from landlane.events.model import RecordedEvent


def event_json(event: RecordedEvent) -> EventJson:
    """Return an event as JSON."""
    return {
        "id": event.id,
        "kind": event.kind,
        "text": event.text,
        "at": rfc3339(event.at),
        "facts": dict(event.facts),
        "sent": {
            name: {"state": sending["state"], "tries": sending["tries"], "why": sending["why"] or None}
            for name, sending in event.channels.items()
        },
    }


def notice_json(event: RecordedEvent, repository: str) -> dict[str, Any]:
    """Return the JSON that channels get: with the repository name, without the state of the sendings."""
    facts = {name: fact for name, fact in event_json(event).items() if name != "sent"}
    return {**facts, "repository": repository}


def event_line(event: RecordedEvent) -> str:
    """Return an event as one line of text."""
    return f"{rfc3339(event.at)}  {event.id:<5} {event.kind:<14} {event.text}"
