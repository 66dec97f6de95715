"""Combine the opinions of several reviewers: merged findings, contradictions, and the result."""

from __future__ import annotations

from itertools import combinations

from landlane.reviews.model import (
    APPROVE,
    APPROVED,
    DECIDING,
    REJECT,
    REJECTED,
    Contradiction,
    ReviewFinding,
    ReviewState,
    Severity,
)
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.reviews.model import Opinion


_MIN_SHARED_WORDS = 0.6  # of all words of two findings at one place that count as the same finding
_MAX_LINES_APART = 3  # for two findings that count as the same


@value
class MergedFinding:
    """A finding with all reviewers that have it; its severity is the worst of theirs."""

    finding: ReviewFinding
    sources: tuple[str, ...]


@value
class ReviewResult:
    """The state that the verdicts lead to; for `deciding`, also why they lead to no result."""

    state: ReviewState
    contradictions: tuple[Contradiction, ...] = ()
    why: str = ""


def judge(opinions: Sequence[Opinion], missing: int) -> ReviewResult:
    """Return the state that the verdicts lead to, if `missing` reviewers will not give one."""
    contradictions = find_contradictions(opinions)
    is_rejected = any(opinion.verdict == REJECT for opinion in opinions)
    if contradictions:
        why = "; ".join(
            f"{place_text(one.path, one.line)}: {one.what}" if one.path else one.what
            for one in contradictions
        )
        return ReviewResult(state=DECIDING, contradictions=tuple(contradictions), why=why)
    if missing and not is_rejected:
        why = f"{missing} of {missing + len(opinions)} reviewers gave no verdict"
        return ReviewResult(state=DECIDING, why=why)
    return ReviewResult(state=REJECTED if is_rejected else APPROVED)


def merge_findings(opinions: Sequence[Opinion]) -> list[MergedFinding]:
    """Return the findings in the order given, with equal ones of several reviewers merged."""
    merged: list[MergedFinding] = []
    for opinion in opinions:
        for finding in opinion.findings:
            _add_finding(merged, finding, opinion.source)
    return merged


def _add_finding(merged: list[MergedFinding], finding: ReviewFinding, source: str) -> None:
    for at, one in enumerate(merged):
        first = one.finding
        if _is_same(first, finding):
            worst = max(first.severity, finding.severity, key=lambda severity: severity.rank)
            first = replace(first, line=first.line or finding.line, severity=worst)
            merged[at] = MergedFinding(finding=first, sources=tuple(dict.fromkeys((*one.sources, source))))
            return
    merged.append(MergedFinding(finding=finding, sources=(source,)))


def _is_same(one: ReviewFinding, other: ReviewFinding) -> bool:
    is_near = not one.line or not other.line or abs(one.line - other.line) <= _MAX_LINES_APART
    if one.path != other.path or not is_near or _are_opposite(one, other):
        return False
    words, other_words = _words(one.text), _words(other.text)
    shared = len(words & other_words)
    return words == other_words or (bool(shared) and shared / len(words | other_words) >= _MIN_SHARED_WORDS)


def _words(text: str) -> set[str]:
    return set("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())


def _are_opposite(one: ReviewFinding, other: ReviewFinding) -> bool:
    """Return whether one praises what the other finds wrong, or calls a blocker what the other only notes."""
    mild, bad = sorted((one.severity, other.severity), key=lambda severity: severity.rank)
    if mild == Severity.PRAISE:
        return bad.rank >= Severity.MINOR.rank
    return mild == Severity.NOTE and bad == Severity.BLOCKER


def find_contradictions(opinions: Sequence[Opinion]) -> list[Contradiction]:
    """Return the opposite verdicts, and the opposite findings about one line or one file."""
    contradictions: list[Contradiction] = []
    approving = [opinion.source for opinion in opinions if opinion.verdict == APPROVE]
    rejecting = [opinion.source for opinion in opinions if opinion.verdict == REJECT]
    if approving and rejecting:
        names = ", ".join(approving), ", ".join(rejecting)
        what = f"{names[0]} approve{_s(approving)}, {names[1]} reject{_s(rejecting)}"
        contradictions.append(Contradiction(sources=names, what=what))
    places: dict[tuple[str, int], list[tuple[str, ReviewFinding]]] = {}
    for opinion in opinions:
        for finding in opinion.findings:
            if finding.path:
                places.setdefault((finding.path, finding.line), []).append((opinion.source, finding))
    for (path, line), findings in places.items():
        for (source, one), (other_source, other) in combinations(findings, 2):
            if source != other_source and _are_opposite(one, other):
                what = f"{source} calls it {one.severity}, {other_source} {other.severity}"
                contradictions.append(
                    Contradiction(sources=(source, other_source), what=what, path=path, line=line)
                )
    return contradictions


def _s(sources: Sequence[str]) -> str:
    return "s" if len(sources) == 1 else ""


def place_text(path: str, line: int) -> str:
    """Return where a finding is, in the form that editors understand."""
    return (f"{path}:{line}" if line else path) or "the change"


def feedback_text(name: str, opinions: Sequence[Opinion], most: int) -> str:
    """Return what the reviewers said, for the author: summaries, then merged findings, the worst first."""
    lines = [
        f"{opinion.source} says {opinion.verdict}{': ' + opinion.summary if opinion.summary else ''}"
        for opinion in opinions
    ]
    lines += [
        f"{one.finding.severity} at {place_text(one.finding.path, one.finding.line)}"
        f" ({', '.join(one.sources)}): {one.finding.text}"
        for one in sorted(merge_findings(opinions), key=lambda one: -one.finding.severity.rank)
        if one.finding.severity != Severity.PRAISE
    ]
    text = "\n".join(lines)
    tail = f"\n… the rest: landlane review show {name}"
    return text if len(text) <= most else text[: most - len(tail)] + tail
