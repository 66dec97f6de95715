"""The types of gates in JSON answers."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from landlane.gates.model import GateKind, GateState
from landlane.json_time import Time


class SpentJson(TypedDict):
    """What a task and those that followed from it have cost so far."""

    usd: float
    is_known: bool
    attempts: int


class GateEvidenceJson(TypedDict):
    """What is known about the change that a person decides about."""

    files: NotRequired[int]
    added: NotRequired[int]
    removed: NotRequired[int]
    paths: NotRequired[list[str]]
    commits: NotRequired[int | None]
    base: NotRequired[str]
    title: NotRequired[str]
    attempt: NotRequired[int]
    check: NotRequired[str | None]
    cost: NotRequired[SpentJson | None]
    verified: NotRequired[list[str]]
    history: NotRequired[str]
    said: NotRequired[str]


class GateJson(TypedDict):
    """A question to a person; an approval is valid for exactly what `about` names."""

    id: str
    kind: GateKind
    state: GateState
    why: str
    about: dict[str, Any]
    risk: int
    task: str | None
    attempt: int | None
    agent: str | None
    session: str | None
    evidence: GateEvidenceJson
    keeps: list[str]
    asked_at: Time
    waited_seconds: int
    answered_at: Time | None
    answered_by: str | None
    answer: str | None
    is_resumed: bool
