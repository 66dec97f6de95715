"""Reviews: findings of several reviewers brought together, and what their verdicts come to.

A review is of exactly one commit, and each reviewer gives one verdict (`verdict.py`). `reconcile` merges
findings in order and finds what contradicts itself; `judge` says what the verdicts come to.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.reviews.verdict_model import APPROVE, REJECT, SEVERITIES, Finding, Opinion
from landlane.text import check_label
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any


OPEN = "open"
DECIDING = "deciding"
APPROVED = "approved"
REJECTED = "rejected"
OUTDATED = "outdated"
GOING_ON = (OPEN, DECIDING)

_FAULT = SEVERITIES.index("minor")
_MILD, _GRAVE = SEVERITIES.index("note"), SEVERITIES.index("blocker")
PERSON = "person"  # the decider, unless the task names an agent

ROLE = "review"
MOST_REVIEWERS = 10
_LIKE = 0.6  # the share of common words from which two findings at one place say the same
_NEAR = 3  # lines that the same finding may be apart


@value
class Merged:
    """A finding, and all who have it; its severity is the worst that was said."""

    finding: Finding
    sources: tuple[str, ...]


@value
class Contradiction:
    """Two who cannot both be right: about the whole (no path), or about one place."""

    sources: tuple[str, str]
    what: str
    path: str = ""
    line: int = 0


@value
class Reconciled:
    """What several opinions come to: findings in the order in which they were given, and contradictions."""

    findings: tuple[Merged, ...]
    contradictions: tuple[Contradiction, ...]


@value
class Step:
    """The review that a task asks for: how many verdicts, by whom, and who decides when they disagree."""

    reviewers: tuple[str, ...]  # a name for each, or "" where anybody may
    decider: str = PERSON


@value
class Review:
    """One review of one commit. Instants are the calendar's, in milliseconds.

    `entries` hold for each reviewer: name, task, verdict, by, session, findings, summary, at. `decision` has
    the same form, once there is a need for it.
    """

    id: str
    task: str
    attempt: int
    head: str
    agent: str  # the author
    session: str
    decider: str
    entries: Sequence[Mapping[str, Any]]
    opened_at: int
    base: str = ""
    change: str = ""  # by which what is reviewed is known again, in whichever commit
    state: str = OPEN
    is_settled: bool = False
    round: int = 1
    decision: Mapping[str, Any] | None = None
    contradictions: Sequence[Mapping[str, Any]] = ()
    gate: str = ""
    holder: str = ""
    claims: Sequence[Mapping[str, Any]] = ()
    why: str = ""
    ended_at: int = 0


# ------------------------------------------------------------------------------------------- the step


def check_step(count: int, reviewers: Sequence[str], decider: str) -> tuple[str, ...]:
    """The labels by which a task names its review step; none when it names none.

    Raises:
        Malformed: there are too many, or a name cannot be used.
    """
    if not count and not reviewers:
        if decider:
            raise Malformed(
                "a decider without reviewers has nothing to decide",
                code="BAD_REVIEW",
                hint="say how many reviewers there are: --review 2",
            )
        return ()
    if not 0 <= count <= MOST_REVIEWERS or len(reviewers) > MOST_REVIEWERS:
        raise Malformed(
            f"{max(count, len(reviewers))} reviewers for one task",
            code="BAD_REVIEW",
            hint=f"1 to {MOST_REVIEWERS} are possible",
        )
    names = [*dict.fromkeys(reviewers), *([decider] if decider else [])]
    for name in names:
        check_label(name, "reviewer", 48)
    found = [f"review:{max(count, len(set(reviewers)))}"]
    found += [f"reviewer:{name}" for name in dict.fromkeys(reviewers)]
    found += [f"decider:{decider}"] if decider else []
    return tuple(found)


def step_of(labels: Iterable[str]) -> Step | None:
    """The review step that a task's labels name."""
    count, names, decider = 0, list[str](), ""
    for label in labels:
        word, _, rest = label.partition(":")
        if word == "review" and rest.isascii() and rest.isdigit():
            count = min(int(rest), MOST_REVIEWERS)
        elif word == "reviewer" and rest:
            names.append(rest)
        elif word == "decider" and rest:
            decider = rest
    return make_step(count, names, decider) if count or names else None


def make_step(count: int, names: Sequence[str], decider: str) -> Step:
    """So many reviewers, the named ones first."""
    named = list(dict.fromkeys(names))[:MOST_REVIEWERS]
    blank = [""] * max(count - len(named), 0 if named else 1)
    return Step(reviewers=(*named, *blank), decider=decider or PERSON)


def is_person(decider: str) -> bool:
    """Whether a person decides, at a gate."""
    return decider == PERSON


def is_meant(name: str, agent: str) -> bool:
    """Whether an agent is the one that is named: by its name, or one of several that bear it."""
    return not name or agent == name or agent.startswith((f"{name}-", f"{name}."))


# --------------------------------------------------------------------------------------- reconciling


def reconcile(opinions: Sequence[Opinion]) -> Reconciled:
    """Bring together what several have found, in the order given.

    The same finding of two is one, with both as its sources. Contradictions are: one approves and another
    rejects; one praises a place that another faults; one calls a place a note and another a blocker.
    """
    merged: list[Merged] = []
    for opinion in opinions:
        for finding in opinion.findings:
            _add(merged, finding, opinion.source)
    found = [*_opposite_verdicts(opinions), *_opposite_findings(opinions)]
    return Reconciled(findings=tuple(merged), contradictions=tuple(found))


def _add(merged: list[Merged], finding: Finding, source: str) -> None:
    for at, one in enumerate(merged):
        if _is_same(one.finding, finding):
            worst = max(one.finding, finding, key=lambda item: SEVERITIES.index(item.severity))
            kept = Finding(
                text=one.finding.text,
                path=one.finding.path,
                line=one.finding.line or finding.line,
                severity=worst.severity,
            )
            merged[at] = Merged(finding=kept, sources=tuple(dict.fromkeys((*one.sources, source))))
            return
    merged.append(Merged(finding=finding, sources=(source,)))


def _is_same(one: Finding, other: Finding) -> bool:
    is_near = not one.line or not other.line or abs(one.line - other.line) <= _NEAR
    if one.path != other.path or not is_near or _are_opposite(one, other):
        return False
    here, there = _words(one.text), _words(other.text)
    common = len(here & there)
    return here == there or (bool(common) and common / len(here | there) >= _LIKE)


def _words(text: str) -> frozenset[str]:
    plain = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    return frozenset(plain.split())


def _are_opposite(one: Finding, other: Finding) -> bool:
    low, high = sorted((SEVERITIES.index(one.severity), SEVERITIES.index(other.severity)))
    return (low == 0 and high >= _FAULT) or (low <= _MILD and high >= _GRAVE)


def _opposite_verdicts(opinions: Sequence[Opinion]) -> list[Contradiction]:
    yes = [one for one in opinions if one.verdict == APPROVE]
    no = [one for one in opinions if one.verdict == REJECT]
    if not yes or not no:
        return []
    names = ", ".join(one.source for one in yes), ", ".join(one.source for one in no)
    return [Contradiction(sources=names, what=f"{names[0]} approve{_s(yes)}, {names[1]} reject{_s(no)}")]


def _s(some: Sequence[object]) -> str:
    return "s" if len(some) == 1 else ""


def _opposite_findings(opinions: Sequence[Opinion]) -> list[Contradiction]:
    """What two say of one place that cannot both be so; a whole file is a place, too."""
    places: dict[tuple[str, int], list[tuple[str, Finding]]] = {}
    for opinion in opinions:
        for finding in opinion.findings:
            if finding.path:
                places.setdefault((finding.path, finding.line), []).append((opinion.source, finding))
    found: list[Contradiction] = []
    for (path, line), said in places.items():
        for at, (source, one) in enumerate(said):
            for other_source, other in said[at + 1 :]:
                if source != other_source and _are_opposite(one, other):
                    what = f"{source} calls it {one.severity}, {other_source} {other.severity}"
                    found.append(
                        Contradiction(sources=(source, other_source), what=what, path=path, line=line)
                    )
    return found


@value
class Judgement:
    """What the verdicts come to: `approved`, `rejected`, or `deciding` with what speaks against an answer."""

    state: str
    contradictions: tuple[Contradiction, ...] = ()
    why: str = ""


def judge(opinions: Sequence[Opinion], *, missing: int, is_over: bool) -> Judgement | None:
    """What is to be done, once all verdicts are there or none can come any more; nothing before that.

    `missing` counts the reviewers that have said nothing; `is_over` that none of them will.
    """
    if missing and not is_over:
        return None
    found = reconcile(opinions).contradictions
    if found:
        return Judgement(state=DECIDING, contradictions=found, why="; ".join(_told(one) for one in found))
    if missing and not any(one.verdict == REJECT for one in opinions):
        return Judgement(
            state=DECIDING, why=f"{missing} of {missing + len(opinions)} reviewers gave no verdict"
        )
    is_rejected = any(one.verdict == REJECT for one in opinions)
    return Judgement(state=REJECTED if is_rejected else APPROVED)


def _told(one: Contradiction) -> str:
    return f"{place(one.path, one.line)}: {one.what}" if one.path else one.what


def place(path: str, line: int) -> str:
    """Where a finding is, as people and editors write it."""
    return (f"{path}:{line}" if line else path) or "the whole"


def feedback_text(name: str, opinions: Sequence[Opinion], most: int) -> str:
    """What reviewers said, for the author: summaries first, then each finding once, the worst first."""
    merged = reconcile(opinions).findings
    order = sorted(merged, key=lambda one: -SEVERITIES.index(one.finding.severity))
    lines = [
        f"{one.source} says {one.verdict}{': ' + one.summary if one.summary else ''}" for one in opinions
    ]
    lines += [
        f"{one.finding.severity} at {place(one.finding.path, one.finding.line)} ({', '.join(one.sources)}):"
        f" {one.finding.text}"
        for one in order
        if one.finding.severity != "praise"
    ]
    text = "\n".join(lines)
    tail = f"\n… `landlane review show {name}` tells the rest"
    return text if len(text) <= most else text[: most - len(tail)] + tail
