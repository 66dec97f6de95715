"""The types of reviews in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.json_time import Time
from landlane.reviews.model import ReviewState, ReviewVerdict, Severity


class GivenFindingJson(TypedDict):
    """A finding as its reviewer gave it; without a place, `path` is empty and `line` is 0."""

    text: str
    path: str
    line: int
    severity: Severity


class ReviewEntryJson(TypedDict):
    """One reviewer and its verdict, which is null until it is given."""

    reviewer: str | None
    task: str
    verdict: ReviewVerdict | None
    summary: str | None
    findings: list[GivenFindingJson]
    at: Time | None


class MergedFindingJson(TypedDict):
    """A finding, and the reviewers that reported it."""

    path: str | None
    line: int | None
    severity: Severity
    text: str
    by: list[str]


class ContradictionJson(TypedDict):
    """What reviewers disagree about."""

    by: list[str]
    path: str | None
    line: int | None
    what: str


class ReviewJson(TypedDict):
    """A review with all verdicts and the merged findings."""

    id: str
    task: str
    attempt: int
    round: int
    state: ReviewState
    head: str | None
    base: str | None
    author: str | None
    why: str | None
    verdicts: list[ReviewEntryJson]
    decider: str
    decision: ReviewEntryJson | None
    gate: str | None
    findings: list[MergedFindingJson]
    contradictions: list[ContradictionJson]
    opened: Time
    ended: Time | None
