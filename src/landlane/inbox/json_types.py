"""The types of what waits for a person in JSON answers."""

from __future__ import annotations

from typing import Literal, TypedDict

from landlane.gates.json_types import GateEvidenceJson, GateJson
from landlane.gates.model import GateState
from landlane.json_time import Time
from landlane.landing.json_types import LandingJson
from landlane.landing.model import LandingState

InboxKind = Literal["landing", "gate", "review", "handoff", "dead"]


class UnblockedJson(TypedDict):
    """A task that an answer lets go on, and what else it still waits for."""

    task: str
    title: str
    waits_for: list[str]


class InboxItemJson(TypedDict):
    """Something that waits for a person."""

    id: str
    kind: InboxKind
    what: str
    task: str | None
    title: str | None
    risk: int
    unblocks: list[UnblockedJson]
    command: str
    asked_at: Time
    waited_seconds: int


class HeldLandingJson(TypedDict):
    """A landing that waits for approval, in the form of a gate."""

    id: str
    kind: Literal["landing"]
    state: GateState | LandingState
    why: str
    about: dict[str, str]
    risk: int
    task: str | None
    attempt: int | None
    agent: str
    session: str
    evidence: GateEvidenceJson
    asked_at: Time
    waited_seconds: int
    landing: LandingJson


class _Decision(TypedDict):
    moved: str | None
    unblocks: list[UnblockedJson]
    diffstat: str | None


class ShownGateJson(GateJson, _Decision):
    """A gate, what changed since it was asked, and what an answer unblocks."""


class ShownLandingJson(HeldLandingJson, _Decision):
    """A landing that waits for approval, and what an answer unblocks."""


class ListedGateJson(GateJson):
    """A gate, and whether it has waited for too long."""

    is_overdue: bool


class ListedLandingJson(HeldLandingJson):
    """A landing that waits for approval, and whether it has waited for too long."""

    is_overdue: bool
