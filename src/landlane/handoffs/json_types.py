"""The types of handoffs in JSON answers."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from landlane.handoffs.model import HandoffState
from landlane.json_time import Time
from landlane.sessions.model import ClaimMode


class HandedClaimJson(TypedDict):
    """A claim that a handoff transfers."""

    pattern: str
    mode: ClaimMode


class RanCommandJson(TypedDict):
    """A command that the sender ran; the exit code is null if it is unknown."""

    command: str
    exit: int | None
    at: Time


class FailedAttemptJson(TypedDict):
    """Why an earlier attempt ended."""

    attempt: int
    agent: str
    why: str


class CollectedStateJson(TypedDict):
    """The state of a task when it was handed over: what could be read of git, claims and commands."""

    machine: NotRequired[str]
    branch: NotRequired[str]
    path: NotRequired[str]
    workspace: NotRequired[str]
    head: NotRequired[str]
    base: NotRequired[str]
    commits: NotRequired[int]
    changed: NotRequired[list[str]]
    dirty: NotRequired[list[str]]
    rescue: NotRequired[str]
    claims: NotRequired[list[HandedClaimJson]]
    commands: list[RanCommandJson]
    failed: NotRequired[list[FailedAttemptJson]]
    unknown: NotRequired[list[str]]
    attempt: NotRequired[int]


_Sender = TypedDict("_Sender", {"from": str})


class HandoffJson(_Sender):
    """A handoff of a task; the settings of the project define the names and types in `fields`."""

    id: str
    task: str
    state: HandoffState
    to: str
    attempt: int
    maximum: int
    product: str | None
    context: str | None
    constraints: list[str]
    next: str | None
    blockers: list[str]
    assumptions: list[str]
    fields: dict[str, Any]
    taken: CollectedStateJson
    hash: str
    intact: bool
    sent: Time
    until: Time
    declined_by: list[str]
    accepted_by: str | None
    accepted: Time | None
    why: str | None
