"""The types of claims and refusals in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.claims.check import PathState
from landlane.json_time import Time
from landlane.patterns.pattern import PatternKind
from landlane.sessions.model import ClaimMode, SessionKind


class ClaimJson(TypedDict):
    """A claim: who may change what a pattern names, until when."""

    pattern: str
    kind: PatternKind
    mode: ClaimMode
    token: int
    holder: str
    session: str
    since: Time
    until: Time
    task: str | None
    note: str | None


_Purpose = TypedDict("_Purpose", {"for": str | None})


class HoldingJson(ClaimJson, _Purpose):
    """A claim with what it is for, how it ends and who waits for it."""

    title: str | None
    holder_kind: SessionKind
    ends: str
    waiting: list[str]


class RefusalJson(TypedDict):
    """Why one pattern was not granted."""

    pattern: str
    holder: str
    session: str
    held: str
    mode: ClaimMode
    since: Time
    age: str
    until: Time
    task: str | None
    note: str | None
    waiting: bool
    message: str
    hint: str
    holders: list[HoldingJson]
    position: int


class WaiterJson(TypedDict):
    """A session that waits for paths or for a slot."""

    ticket: int
    agent: str
    mode: ClaimMode
    patterns: list[str]
    since: Time


class CheckedPathJson(TypedDict):
    """Whether the caller may change a path."""

    path: str
    state: PathState
    allowed: bool
    claim: ClaimJson | None
    message: str
