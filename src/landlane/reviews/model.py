"""Reviews: their states, the reviewers of each, what these say, and which review a task requires.

A review is about exactly one commit, and each reviewer gives one verdict.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed
from landlane.text import check_label
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any


class ReviewState(StrEnum):
    """The state of a review."""

    OPEN = "open"
    DECIDING = "deciding"  # the reviewers disagree, and the decider has not answered yet
    APPROVED = "approved"
    REJECTED = "rejected"
    OUTDATED = "outdated"


OPEN, DECIDING, APPROVED, REJECTED, OUTDATED = ReviewState
UNDECIDED = (OPEN, DECIDING)

# `Review.become` makes every change and checks it here. A person decides if the named decider does not;
# approved work can be withdrawn until it lands.
_TRANSITIONS: Mapping[ReviewState, Sequence[ReviewState]] = {
    OPEN: (DECIDING, APPROVED, REJECTED, OUTDATED),
    DECIDING: (DECIDING, APPROVED, REJECTED, OUTDATED),
    APPROVED: (OUTDATED,),
    REJECTED: (),
    OUTDATED: (),
}


class ReviewVerdict(StrEnum):
    """What a reviewer wants to happen to the commit."""

    APPROVE = "approve"
    REJECT = "reject"


APPROVE, REJECT = ReviewVerdict


class Severity(StrEnum):
    """How bad a finding is, mildest first."""

    PRAISE = "praise"
    NOTE = "note"
    MINOR = "minor"
    MAJOR = "major"
    BLOCKER = "blocker"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


PERSON = "person"  # the decider, unless the task names an agent
MOST_REVIEWERS = 10


@value
class ReviewFinding:
    """One remark of a reviewer. Without a path it is about the change in general."""

    text: str
    path: str = ""
    line: int = 0
    severity: Severity = Severity.MINOR


@value
class Opinion:
    """The verdict of one reviewer with its reasons."""

    source: str
    verdict: ReviewVerdict
    findings: tuple[ReviewFinding, ...] = ()
    summary: str = ""


@value
class Contradiction:
    """What two reviewers disagree about: the verdict (no path), or one place in the code."""

    sources: Sequence[str]
    what: str
    path: str = ""
    line: int = 0


@value
class ReviewEntry:
    """One reviewer, its task, and its verdict once it is given."""

    name: str  # who is asked; empty if any agent may answer
    task: str
    verdict: ReviewVerdict | None = None
    by: str = ""  # the agent that answered
    session: str = ""
    summary: str = ""
    findings: tuple[ReviewFinding, ...] = ()
    at: int = 0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ReviewEntry:
        fields: dict[str, Any] = {**document}
        fields["verdict"] = ReviewVerdict(document["verdict"]) if document["verdict"] else None
        fields["findings"] = tuple(
            replace(ReviewFinding(**finding), severity=Severity(finding["severity"]))
            for finding in document["findings"]
        )
        return cls(**fields)

    def to_document(self) -> dict[str, Any]:
        findings = [as_dict(finding) for finding in self.findings]
        return {**as_dict(self), "verdict": self.verdict or "", "findings": findings}


@value
class Review:
    """One review of one commit. Instants are wall-clock milliseconds."""

    id: str
    task: str
    attempt: int
    head: str
    agent: str  # the author
    session: str
    decider: str
    opened_at: int
    entries: tuple[ReviewEntry, ...] = ()
    base: str = ""
    change: str = ""  # identifies the reviewed change, whichever commit it is in
    state: ReviewState = OPEN
    is_settled: bool = False
    round: int = 1
    decision: ReviewEntry | None = None  # asked for when the reviewers disagree
    contradictions: tuple[Contradiction, ...] = ()
    gate: str = ""
    holder: str = ""  # the session that holds the author's claims during the review
    claims: Sequence[Mapping[str, Any]] = ()
    why: str = ""
    ended_at: int = 0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Review:
        """Return the review that a record describes."""
        fields: dict[str, Any] = {**document, "state": ReviewState(document["state"])}
        decision = document["decision"]
        fields["decision"] = ReviewEntry.from_document(decision) if decision else None
        fields["entries"] = tuple(ReviewEntry.from_document(entry) for entry in document["entries"])
        fields["contradictions"] = tuple(Contradiction(**one) for one in document["contradictions"])
        return cls(**fields)

    def to_document(self) -> dict[str, Any]:
        """Return the record of this review."""
        fields = as_dict(self)
        fields["decision"] = self.decision.to_document() if self.decision else None
        fields["entries"] = [entry.to_document() for entry in self.entries]
        fields["contradictions"] = [as_dict(one) for one in self.contradictions]
        return fields

    def become(self, state: ReviewState, **changes: object) -> Review:
        """Return the review in another state, with some fields changed.

        Raises:
            ValueError: the transition table does not have this change.
        """
        if state not in _TRANSITIONS[self.state]:
            raise ValueError(f"{self.id} is {self.state} and cannot become {state}")
        return replace(self, state=state, **changes)

    @property
    def all_entries(self) -> tuple[ReviewEntry, ...]:
        """The entries of the reviewers and, if there is one, that of the decider."""
        return (*self.entries, self.decision) if self.decision else self.entries

    @property
    def awaited(self) -> list[ReviewEntry]:
        """The entries whose verdict the review waits for now."""
        entries = self.entries if self.state == OPEN else self.all_entries[len(self.entries) :]
        return [entry for entry in entries if entry.verdict is None]

    @property
    def opinions(self) -> list[Opinion]:
        """The verdicts so far, the decision last."""
        return [
            Opinion(
                source=entry.by or entry.name,
                verdict=entry.verdict,
                findings=entry.findings,
                summary=entry.summary,
            )
            for entry in self.all_entries
            if entry.verdict is not None
        ]


@value
class RequiredReview:
    """The review that a task requires: its reviewers, and who decides when they disagree."""

    reviewers: tuple[str, ...]  # a name for each; empty for any agent
    decider: str = PERSON


def require_review(count: int, names: Iterable[str], decider: str) -> RequiredReview:
    """Return a review by this number of reviewers, the named ones first."""
    named = list(dict.fromkeys(names))[:MOST_REVIEWERS]
    unnamed = [""] * max(count - len(named), 0 if named else 1)
    return RequiredReview(reviewers=(*named, *unnamed), decider=decider or PERSON)


def review_labels(count: int, reviewers: Sequence[str], decider: str) -> tuple[str, ...]:
    """Return the labels of a task that requires this review; none without reviewers.

    Raises:
        Malformed: there are too many reviewers, a name is not valid, or there is only a decider.
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
    names = dict.fromkeys(reviewers)
    for name in (*names, *([decider] if decider else [])):
        check_label(name, "reviewer", 48)
    return (
        f"review:{max(count, len(names))}",
        *(f"reviewer:{name}" for name in names),
        *([f"decider:{decider}"] if decider else []),
    )


def review_in_labels(labels: Iterable[str], default_decider: str = "") -> RequiredReview | None:
    """Return the review that the labels of a task require, if any."""
    count, names, decider = 0, list[str](), default_decider
    for label in labels:
        word, _, rest = label.partition(":")
        if word == "review" and rest.isascii() and rest.isdigit():
            count = min(int(rest), MOST_REVIEWERS)
        elif word == "reviewer" and rest:
            names.append(rest)
        elif word == "decider" and rest:
            decider = rest
    return require_review(count, names, decider) if count or names else None


def is_asked(name: str, agent: str) -> bool:
    """Return whether a reviewer's name means this agent; several agents can share the beginning of a name."""
    return not name or agent == name or agent.startswith((f"{name}-", f"{name}."))
