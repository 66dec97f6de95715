"""Inbox entries as JSON and table items."""

from __future__ import annotations

from landlane.clock import duration_text, rfc3339
from landlane.gates.model import WAITING
from landlane.gates.to_json import cost_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.landing.model import Landing


def landing_gate_json(
    landing: Landing, shown: Mapping[str, Any], risk: int, evidence: Mapping[str, Any], now: int
) -> dict[str, Any]:
    """An entry of the landing queue that waits for a person, in the same form."""
    return {
        "id": landing.id,
        "kind": "landing",
        "state": WAITING,
        "why": landing.gate,
        "about": {"head": landing.head, "branch": landing.branch, "target": landing.target},
        "risk": risk,
        "task": landing.task or None,
        "attempt": landing.attempt or None,
        "agent": landing.agent,
        "session": landing.session,
        "evidence": dict(evidence),
        "asked_at": rfc3339(landing.submitted_at),
        "waited_seconds": max(now - landing.submitted_at, 0) // 1000,
        "landing": dict(shown),
    }


def inbox_cells(item: Mapping[str, Any]) -> list[str]:
    """A line of the inbox."""
    found = item["evidence"]
    about = f"{item['task'] or ''}".strip()
    waited = duration_text(item["waited_seconds"] * 1000) + (" overdue" if item.get("is_overdue") else "")
    more = [
        str(item["risk"]),
        item["agent"] or "",
        about,
        size_text(found),
        cost_text(found),
        waited,
        item["why"],
    ]
    return [item["id"], item["kind"], *more]
