"""A conversation with a worker: which message may come when, and how long the worker may be silent.

    new ── WorkAssignment ──▶ working ── Heartbeat, Progress ──▶ working
                                 └────── WorkComplete, WorkFailed ──▶ over: nothing more may come

A conversation is a value: hearing a message gives the next one, or a `Flaw`. Time is given, never read.
"""

from __future__ import annotations

from landlane.protocol.worker.messages import Flaw, Progress, WorkAssignment, WorkComplete, WorkFailed
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.protocol.worker.heartbeat_limits import Limits
    from landlane.protocol.worker.messages import Ending, Message, Usage


NEW, WORKING, OVER = "new", "working", "over"


@value
class Conversation:
    """What was said so far, as far as it matters for what may follow."""

    assignment: WorkAssignment | None = None
    began_at: int = 0
    heard_at: int = 0
    messages: int = 0
    usage: Usage | None = None  # what the worker last told of it
    end: Ending | None = None

    @property
    def state(self) -> str:
        """New, working or over."""
        return NEW if self.assignment is None else WORKING if self.end is None else OVER

    def hear(self, message: Message, now: int) -> Conversation | Flaw:
        """The conversation after this message, or why it may not come now. Instants are milliseconds."""
        name = type(message).__name__
        if isinstance(message, WorkAssignment):
            if self.assignment is not None:
                return _out_of_order("a WorkAssignment may not come from a worker, nor a second time")
            return replace(self, assignment=message, began_at=now, heard_at=now)
        if self.assignment is None:
            return _out_of_order(f"{name} came before any WorkAssignment")
        if self.end is not None:
            return _out_of_order(f"{name} came after {type(self.end).__name__}, which was the end")
        if message.assignment != self.assignment.assignment:
            return _out_of_order(
                f"{name} is about {message.assignment[:60]!r}, and the assignment is "
                f"{self.assignment.assignment[:60]!r}"
            )
        changes: dict[str, object] = {"heard_at": now, "messages": self.messages + 1}
        if isinstance(message, (Progress, WorkComplete, WorkFailed)) and message.usage is not None:
            changes["usage"] = message.usage
        if isinstance(message, (WorkComplete, WorkFailed)):
            changes["end"] = message
        return replace(self, **changes)

    def overlook(self, unheard_ms: int, now: int) -> Conversation:
        """Nobody listened for so long before now: that is no silence of the worker's."""
        return replace(self, heard_at=max(min(self.heard_at + unheard_ms, now), self.heard_at))

    def judge(self, now: int, limits: Limits) -> Flaw | None:
        """Why the worker has to be ended now; nothing while it may go on."""
        if self.state != WORKING:
            return None
        silent = now - self.heard_at
        if silent >= limits.silence_ms:
            return Flaw(code="silent", reason=f"no sign of life for {silent / 1000:g} s")
        if limits.whole_ms is not None and now - self.began_at >= limits.whole_ms:
            return Flaw(code="late", reason=f"not done within {limits.whole_ms / 1000:g} s")
        if self.messages > limits.most_messages:
            return Flaw(code="flooded", reason=f"more than {limits.most_messages:,} messages")
        return None


def _out_of_order(reason: str) -> Flaw:
    return Flaw(code="out_of_order", reason=reason)
