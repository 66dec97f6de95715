"""Gates as JSON."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.gates.model import WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.gates.json_types import GateJson
    from landlane.gates.model import Gate


def gate_json(gate: Gate, now: int = 0) -> GateJson:
    """Return a gate as JSON; `now` is used for the time it has waited so far."""
    evidence: Any = dict(gate.evidence)  # as `collect_evidence` returned it
    waited = (gate.answered_at or now or gate.asked_at) - gate.asked_at
    return {
        "id": gate.id,
        "kind": gate.kind,
        "state": gate.state,
        "why": gate.why,
        "about": dict(gate.about),
        "risk": gate.risk,
        "task": gate.task or None,
        "attempt": gate.attempt or None,
        "agent": gate.agent or None,
        "session": gate.session or None,
        "evidence": evidence,
        "keeps": [claim["pattern"] for claim in gate.claims] if gate.state == WAITING else [],
        "asked_at": rfc3339(gate.asked_at),
        "waited_seconds": max(waited, 0) // 1000,
        "answered_at": rfc3339(gate.answered_at) if gate.answered_at else None,
        "answered_by": gate.answered_by or None,
        "answer": gate.answer or None,
        "is_resumed": gate.is_resumed,
    }
