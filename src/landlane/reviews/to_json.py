"""Reviews as JSON and text."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.reviews.model import APPROVE, APPROVED, DECIDING, OPEN
from landlane.reviews.reconcile import merge_findings, place_text
from landlane.units import count
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.reviews.model import Review, ReviewEntry


_COMMIT = 8  # digits of a commit that people see


def review_json(review: Review) -> dict[str, Any]:
    """Return a review as JSON, with all verdicts and the merged findings."""
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
        "verdicts": [_entry_json(entry) for entry in review.entries],
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
            for one in merge_findings(review.opinions)
        ],
        "contradictions": [
            {"by": list(one.sources), "path": one.path or None, "line": one.line or None, "what": one.what}
            for one in review.contradictions
        ],
        "opened": rfc3339(review.opened_at),
        "ended": rfc3339(review.ended_at) if review.ended_at else None,
    }


def _entry_json(entry: ReviewEntry) -> dict[str, Any]:
    return {
        "reviewer": entry.by or entry.name or None,
        "task": entry.task,
        "verdict": entry.verdict,
        "summary": entry.summary or None,
        "findings": [as_dict(finding) for finding in entry.findings],
        "at": rfc3339(entry.at) if entry.at else None,
    }


def review_text(review: Review) -> str:
    """Return a review as text: who says what, then each finding once."""
    at = review.head[:_COMMIT] or f"attempt {review.attempt}"
    lines = [f"{review.id} of {review.task} at {at} (round {review.round}): {review.state}"]
    lines += [f"  {review.why}"] if review.why else []
    for entry in review.all_entries:
        summary = f": {entry.summary}" if entry.summary else ""
        verdict = entry.verdict or "no verdict yet"
        lines.append(f"  {entry.by or entry.name or 'any agent'} ({entry.task}) {verdict}{summary}")
    lines += [f"  disagree at {place_text(one.path, one.line)}: {one.what}" for one in review.contradictions]
    for one in merge_findings(review.opinions):
        place = place_text(one.finding.path, one.finding.line)
        lines.append(f"  {one.finding.severity} {place} ({', '.join(one.sources)}): {one.finding.text}")
    if review.gate and not review.ended_at:
        lines.append(f"  a person decides: landlane inbox {review.gate}")
    return "\n".join(lines)


def verdict_text(review: Review, title: str, verdict: str, findings: int) -> str:
    """Return what a verdict did, in one sentence."""
    done = f"{'approved' if verdict == APPROVE else 'rejected'} {review.task} {title}"
    done += f" at {review.head[:_COMMIT]}" if review.head else ""
    done += f", {count(findings, 'finding')}" if findings else ""
    if review.state == OPEN:
        return f"{done}; {count(len(review.awaited), 'more verdict', 'more verdicts')} to come"
    if review.state == DECIDING:
        who = (
            f"a person decides (landlane inbox {review.gate})" if review.gate else f"{review.decider} decides"
        )
        return f"{done}; the reviewers disagree, {who}"
    if review.state == APPROVED:
        return f"{done}; it can land now"
    them = "them" if findings else "it"
    return f"{done}; {review.agent or 'the next owner'} continues with {them}"
