"""A conversation with a worker: which message may come when, and how long the worker may be silent.

    new ── WorkAssignment ──▶ working ── Heartbeat, Progress ──▶ working
                                 └────── WorkComplete, WorkFailed ──▶ over: nothing more may come

A conversation is a value: receiving a message returns the next one, or a `Flaw`. Time is passed in.
"""

from __future__ import annotations

from landlane.protocol.worker.messages import (
    Ending,
    Flaw,
    Message,
    Progress,
    Usage,
    WorkAssignment,
    WorkComplete,
    WorkFailed,
)
from landlane.values import replace, value

NEW, WORKING, OVER = "new", "working", "over"


@value
class WorkerLimits:
    """How long a worker may be silent, how long it may take in all, and how much it may send."""

    silence_ms: int = 60_000
    total_ms: int | None = None
    most_messages: int = 100_000
    most_bytes: int = 64 * 1024 * 1024


def limits_of(assignment: WorkAssignment) -> WorkerLimits:
    """Return the limits that an assignment sets for its worker."""
    total = assignment.limit_seconds
    return WorkerLimits(
        silence_ms=round(assignment.heartbeat_seconds * 1000),
        total_ms=None if total is None else round(total * 1000),
    )


@value
class Conversation:
    """What was received so far, as far as it matters for what may follow. Instants are milliseconds."""

    assignment: WorkAssignment | None = None
    began_at: int = 0
    received_at: int = 0
    messages: int = 0
    usage: Usage | None = None  # the worker's last report of it
    end: Ending | None = None

    @property
    def state(self) -> str:
        """New, working or over."""
        return NEW if self.assignment is None else WORKING if self.end is None else OVER

    def receive(self, message: Message, now: int) -> Conversation | Flaw:
        """Return the conversation after this message, or why it may not come now."""
        name = type(message).__name__
        if isinstance(message, WorkAssignment):
            if self.assignment is not None:
                return _out_of_order("a WorkAssignment may not come from a worker, nor a second time")
            return replace(self, assignment=message, began_at=now, received_at=now)
        if self.assignment is None:
            return _out_of_order(f"{name} came before any WorkAssignment")
        if self.end is not None:
            return _out_of_order(f"{name} came after {type(self.end).__name__}, which was the end")
        if message.assignment != self.assignment.assignment:
            return _out_of_order(
                f"{name} is about {message.assignment[:60]!r}, and the assignment is "
                f"{self.assignment.assignment[:60]!r}"
            )
        changes: dict[str, object] = {"received_at": now, "messages": self.messages + 1}
        if isinstance(message, (Progress, WorkComplete, WorkFailed)) and message.usage is not None:
            changes["usage"] = message.usage
        if isinstance(message, (WorkComplete, WorkFailed)):
            changes["end"] = message
        return replace(self, **changes)

    def excuse_silence(self, unread_ms: int, now: int) -> Conversation:
        """Return the conversation without the time before now in which nobody read the worker's output."""
        return replace(self, received_at=max(min(self.received_at + unread_ms, now), self.received_at))

    def check_limits(self, now: int, limits: WorkerLimits) -> Flaw | None:
        """Return why the worker must be ended now; None while it may go on."""
        if self.state != WORKING:
            return None
        silent_ms = now - self.received_at
        if silent_ms >= limits.silence_ms:
            return Flaw(code="silent", reason=f"no sign of life for {silent_ms / 1000:g} s")
        if limits.total_ms is not None and now - self.began_at >= limits.total_ms:
            return Flaw(code="late", reason=f"not done within {limits.total_ms / 1000:g} s")
        if self.messages > limits.most_messages:
            return Flaw(code="flooded", reason=f"more than {limits.most_messages:,} messages")
        return None


def _out_of_order(reason: str) -> Flaw:
    return Flaw(code="out_of_order", reason=reason)
