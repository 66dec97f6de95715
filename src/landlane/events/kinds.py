"""The kinds of events that can be watched for and sent."""

from __future__ import annotations

COMMITS, DEPENDENCIES, RED, STALLED = "commits", "dependencies", "red", "stalled"
PAUSED, POOL, STALE_CLAIM, DEAD_SESSION = "paused", "pool", "stale-claim", "dead-session"
GATE_WAITING, GATE_REMINDER, GATE_OVERDUE = "gate-waiting", "gate-reminder", "gate-overdue"
HANDOFF_OVERDUE, DEAD_LETTER, NOTIFY_FAILED = "handoff-overdue", "dead-letter", "notify-failed"
