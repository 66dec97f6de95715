"""Attempts as the JSON that every door answers with."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.domain.attempts import Attempt


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    """One attempt: who made it where, and what came of it. What it used is null where nobody knows."""
    return {
        "id": attempt.id,
        "task": attempt.task,
        "attempt": attempt.attempt,
        "agent": attempt.agent,
        "role": attempt.role,
        "client": attempt.client,
        "session": attempt.session,
        "machine": attempt.machine,
        "state": attempt.state,
        "started_at": rfc3339(attempt.started_at),
        "seen_at": rfc3339(attempt.seen_at) if attempt.seen_at else None,
        "ended_at": rfc3339(attempt.ended_at) if attempt.ended_at else None,
        "doing": attempt.doing,
        "code": attempt.code or None,
        "reason": attempt.reason or None,
        "outcome": attempt.outcome or None,
        "head": attempt.head or None,
        "usage": dict(attempt.usage) if attempt.usage is not None else None,
    }
