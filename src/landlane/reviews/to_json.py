"""Reviews as JSON and text."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.reviews.model import APPROVE, APPROVED, DECIDING, OPEN, PERSON, REJECT
from landlane.reviews.reconcile import merge_findings, place_text
from landlane.units import count, time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.reviews.json_types import ReviewEntryJson, ReviewJson
    from landlane.reviews.model import Review, ReviewEntry


_WIDTH = 100
_MARKS = {APPROVE: "✓ approved", REJECT: "✗ rejected"}
_COMMIT = 8  # digits of a commit that people see


def review_json(review: Review) -> ReviewJson:
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


def _entry_json(entry: ReviewEntry) -> ReviewEntryJson:
    return {
        "reviewer": entry.by or entry.name or None,
        "task": entry.task,
        "verdict": entry.verdict,
        "summary": entry.summary or None,
        "findings": [
            {"text": one.text, "path": one.path, "line": one.line, "severity": one.severity}
            for one in entry.findings
        ],
        "at": rfc3339(entry.at) if entry.at else None,
    }


def review_lines(review: Review, title: str, now: int) -> list[str]:
    """Return a review as lines: where it stands, who says what, then each finding once."""
    heading = f"{review.id} {review.task} {title}"
    standing = f"{review.state}, {time_ago(review.ended_at or review.opened_at, now)}"
    lines = [f"{heading}{' ' * max(_WIDTH - len(heading) - len(standing), 3)}{standing}"]
    commit = review.head[:_COMMIT] or f"attempt {review.attempt}"
    lines.append(
        f"  commit    {commit} by {review.agent}" + (f", round {review.round}" if review.round > 1 else "")
    )
    if review.base and review.head:
        lines.append(f"  diff      git diff {review.base[:_COMMIT]}...{review.head[:_COMMIT]}")
    lines += [f"  why       {review.why}"] if review.why else []
    for entry in review.all_entries:
        who = entry.by or ("a person" if entry.name == PERSON else entry.name) or "any agent"
        summary = f": {entry.summary}" if entry.summary else ""
        lines.append(
            f"  {_MARKS[entry.verdict]} by {who}{summary}" if entry.verdict else f"  – {who} has not answered"
        )
    if review.decider and not review.ended_at and review.state == DECIDING:
        who = f"a person: landlane inbox {review.gate}" if review.gate else review.decider
        lines.append(f"  decides   {who}")
    findings = [
        f"  {one.finding.severity}  {place_text(one.finding.path, one.finding.line)}  "
        f"{one.finding.text} ({', '.join(one.sources)})"
        for one in merge_findings(review.opinions)
    ]
    lines += ["", "Findings", *findings] if findings else []
    disagreements = [f"  {place_text(one.path, one.line)}: {one.what}" for one in review.contradictions]
    return lines + (["", "Disagreements", *disagreements] if disagreements else [])


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
