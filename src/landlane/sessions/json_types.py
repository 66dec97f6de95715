"""The types of sessions in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.json_time import Time
from landlane.sessions.model import SessionKind


class SessionJson(TypedDict):
    """A session. Its last sign of life can be `seen_accuracy_seconds` later than `seen`."""

    agent: str
    id: str
    generation: int
    kind: SessionKind
    role: str | None
    machine: str
    started: Time
    seen: Time
    seen_accuracy_seconds: int | None
    doing: str | None
    until: Time


class ListedSessionJson(SessionJson):
    """A session with the coding client it runs in."""

    client: str | None


class OwnSessionJson(SessionJson):
    """The session of the caller, with the secret that proves it."""

    secret: str
