"""Reviews and what reviewers say: the JSON that every door answers with, and text for people."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.reviews.model import Review, place, reconcile
from landlane.reviews.records import opinions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def review_json(review: Review) -> dict[str, Any]:
    """A review with all that was said, and what it comes to."""
    merged = reconcile(opinions_of(review))
    return {
        "id": review.id,
        "task": review.task,
        "attempt": review.attempt,
        "round": review.round,
        "state": review.state,
        "head": review.head or None,
        "base": review.base or None,
        "author": review.agent or None,
        "why": review.why or None,
        "verdicts": [_entry_json(one) for one in review.entries],
        "decider": review.decider,
        "decision": _entry_json(review.decision) if review.decision else None,
        "gate": review.gate or None,
        "findings": [
            {
                "path": one.finding.path or None,
                "line": one.finding.line or None,
                "severity": one.finding.severity,
                "text": one.finding.text,
                "by": list(one.sources),
            }
            for one in merged.findings
        ],
        "contradictions": [
            {
                "by": list(one["sources"]),
                "path": one["path"] or None,
                "line": one["line"] or None,
                "what": one["what"],
            }
            for one in review.contradictions
        ],
        "opened": rfc3339(review.opened_at),
        "ended": rfc3339(review.ended_at) if review.ended_at else None,
    }


def _entry_json(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "reviewer": one["by"] or one["name"] or None,
        "task": one["task"],
        "verdict": one["verdict"] or None,
        "summary": one["summary"] or None,
        "findings": list(one["findings"]),
        "at": rfc3339(one["at"]) if one["at"] else None,
    }


def review_text(review: Review) -> str:
    """A review for people: who says what, then each finding once."""
    item = review_json(review)
    at = review.head[:12] or f"attempt {review.attempt}"
    lines = [f"{review.id} of {review.task} at {at} (round {review.round}): {review.state}"]
    lines += [f"  {review.why}"] if review.why else []
    for one in (*item["verdicts"], *([item["decision"]] if item["decision"] else [])):
        said = one["verdict"] or "has not said anything yet"
        summary = f": {one['summary']}" if one["summary"] else ""
        lines.append(f"  {one['reviewer'] or 'anybody'} ({one['task']}) {said}{summary}")
    lines += [
        f"  disagree at {place(one['path'] or '', one['line'] or 0)}: {one['what']}"
        for one in item["contradictions"]
    ]
    for one in item["findings"]:
        where = place(one["path"] or "", one["line"] or 0)
        lines.append(f"  {one['severity']} {where} ({', '.join(one['by'])}): {one['text']}")
    if review.gate and not review.ended_at:
        lines.append(f"  a person decides: landlane gate show {review.gate}")
    return "\n".join(lines)
