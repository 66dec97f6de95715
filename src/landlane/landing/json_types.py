"""The types of landings, queues and the target branch in JSON answers."""

from __future__ import annotations

from typing import Literal, TypedDict

from landlane.json_time import Time
from landlane.landing.model import LandingState, QueueState
from landlane.landing.target_status import TargetState


class CheckRunJson(TypedDict):
    """A landing check that ended."""

    name: str
    state: Literal["passed", "failed"]
    exit: int
    seconds: float
    lines: list[str]


class LandingJson(TypedDict):
    """One branch on its way onto the target."""

    id: str
    state: LandingState
    branch: str
    head: str
    target: str
    commit: str | None
    agent: str
    session: str
    role: str | None
    task: str | None
    subject: str
    paths: list[str]
    stage: str | None
    base: str | None
    reason: str | None
    code: str | None
    output: str | None
    pair: str | None
    advice: str | None
    gate: str | None
    approved_by: str | None
    unidentified: list[str]
    flaky: list[str]
    sandbox: str | None
    notes: list[str]
    bounce_task: str | None
    submitted_at: Time
    ended_at: Time | None
    checks: list[CheckRunJson]
    check: str | None
    check_started_at: Time | None
    tested_with: str | None
    pair_commit: str | None
    eta_seconds: int | None


class CulpritJson(TypedDict):
    """The commit on the target that a failing check came with."""

    commit: str
    subject: str
    author: str
    landing: str | None


class TargetFailureJson(TypedDict):
    """Why the target branch fails its checks."""

    commit: str
    check: str
    exit: int
    seconds: float
    since: Time
    reason: str
    lines: list[str]
    output: str
    suspects: list[str]
    culprit: CulpritJson


class TargetStatusJson(TypedDict):
    """Whether the target branch passes its checks, and what waits to land on it."""

    branch: str
    state: TargetState
    tip: str | None
    passing: str | None
    failure: TargetFailureJson | None
    waiting: list[str]


class QueueJson(TypedDict):
    """The landing queue of a target branch."""

    target: str
    state: QueueState
    tip: str | None
    reason: str | None
    code: str | None
    tests: int
    landed: int
