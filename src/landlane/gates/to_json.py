"""Gates as JSON and text."""

from __future__ import annotations

from landlane.clock import duration_text, rfc3339
from landlane.gates.model import WAITING, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.gates.model import Gate


def gate_json(gate: Gate, now: int = 0) -> dict[str, Any]:
    """A gate as programs read it; `now` tells how long it has waited."""
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
        "evidence": dict(gate.evidence),
        "keeps": [claim["pattern"] for claim in gate.claims] if gate.state == WAITING else [],
        "asked_at": rfc3339(gate.asked_at),
        "waited_seconds": max(waited, 0) // 1000,
        "answered_at": rfc3339(gate.answered_at) if gate.answered_at else None,
        "answered_by": gate.answered_by or None,
        "answer": gate.answer or None,
        "is_resumed": gate.is_resumed,
    }


def size_text(evidence: Mapping[str, Any]) -> str:
    """How much is changed, in a few letters; nothing when nobody knows."""
    count = evidence.get("files")
    if count is None:
        return ""
    files = f"{count} file{'' if count == 1 else 's'}"
    return f"{files} +{evidence['added']} -{evidence['removed']}" if "added" in evidence else files


def cost_text(evidence: Mapping[str, Any]) -> str:
    """What it has cost so far."""
    cost = evidence.get("cost")
    if not cost:
        return ""
    return f"${cost['usd']:.2f}" if cost["is_known"] else f"at least ${cost['usd']:.2f}"


# What a question comes with: what was tried before, and what those said who do not agree.
_TOLD = {"history": "What was said before", "said": "What the reviewers said"}


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def gate_text(gate: Mapping[str, Any]) -> str:
    """All of what waits, or waited, for a person to read before deciding."""
    found = gate["evidence"]
    lines = [
        f"{gate['id']}  {gate['kind']}  {gate['state']}  risk {gate['risk']}",
        "",
        _indented(gate["why"]),
        "",
    ]
    facts = {
        "task": f"{gate['task']} {found.get('title') or ''}".strip() if gate["task"] else "",
        "asked by": gate["agent"] or "",
        "asked": f"{gate['asked_at']}, {duration_text(gate['waited_seconds'] * 1000)} ago"
        if gate["state"] == WAITING
        else gate["asked_at"],
        "about": describe(gate["about"]) or "nothing that could move",
        "changes": size_text(found),
        "check": found.get("check") or "",
        "cost so far": cost_text(found) or "unknown",
        "keeps": ", ".join(gate.get("keeps") or ()),
        "answer": f"{gate['state']} by {gate.get('answered_by')} at {gate.get('answered_at')}"
        if gate.get("answered_at")
        else "",
        "said": gate.get("answer") or "",
    }
    lines += [f"  {name:<12} {text}" for name, text in facts.items() if text]
    for name, title in _TOLD.items():
        lines += ["", f"{title}:", _indented(str(found[name]))] if found.get(name) else []
    return "\n".join(lines)
