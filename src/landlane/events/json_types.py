"""The types of events in JSON answers."""

from __future__ import annotations

from typing import Any, TypedDict

from landlane.events.model import SendState
from landlane.json_time import Time


class SendingJson(TypedDict):
    """How far sending an event to one channel is."""

    state: SendState
    tries: int
    why: str | None


class EventJson(TypedDict):
    """An event, and where it was sent; `kind` decides what is in `facts`."""

    id: str
    kind: str
    text: str
    at: Time
    facts: dict[str, Any]
    sent: dict[str, SendingJson]
