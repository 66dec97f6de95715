"""The order in which tasks are offered."""

from __future__ import annotations

_HOUR_MS = 3_600_000


def rank_of(ready_at: int, priority: int) -> int:
    """Where a task stands in the order: lower comes first."""
    return ready_at - priority * _HOUR_MS
