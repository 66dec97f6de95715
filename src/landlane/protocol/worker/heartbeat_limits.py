"""How long a worker may be silent, how long it may run, and how much it may say."""

from __future__ import annotations

from landlane.protocol.worker.messages import WorkAssignment
from landlane.values import value

SILENCE_MS = 60_000

_MOST_MESSAGES = 100_000


@value
class Limits:
    """How long a worker may be silent, how long all of it may take, and how much it may say."""

    silence_ms: int = SILENCE_MS
    whole_ms: int | None = None
    most_messages: int = _MOST_MESSAGES
    most_bytes: int = 64 * 1024 * 1024


def limits_of(assignment: WorkAssignment) -> Limits:
    """The limits that an assignment itself tells its worker."""
    whole = assignment.limit_seconds
    return Limits(
        silence_ms=round(assignment.heartbeat_seconds * 1000),
        whole_ms=None if whole is None else round(whole * 1000),
    )
