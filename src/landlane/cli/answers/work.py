"""The answers of the commands under "Work"."""

from __future__ import annotations

from typing import NotRequired

from landlane.claims.json_types import CheckedPathJson, ClaimJson, RefusalJson
from landlane.cli.answers.base import Answer
from landlane.deploys.json_types import PositionJson, UpdateCheckJson
from landlane.deploys.update_checkout import UpdateMethod
from landlane.handoffs.json_types import HandoffJson
from landlane.landing.json_types import LandingJson
from landlane.rules.json_types import CarriedRulesJson
from landlane.tasks.json_types import EvidenceJson, LessonJson, TaskJson
from landlane.workspaces.json_types import TrailersJson


class CheckAnswer(Answer):
    """The answer to `check`."""

    paths: list[CheckedPathJson]


class ClaimAnswer(Answer):
    """The answer to `claim`; with --partial, some patterns may be refused."""

    granted: list[ClaimJson]
    refused: list[RefusalJson]
    waited_seconds: NotRequired[float]
    rescued: NotRequired[str]


class CommitAnswer(Answer):
    """The answer to `commit`."""

    commit: str
    branch: str | None
    subject: str
    paths: list[str]
    trailers: TrailersJson
    changed_by_hooks: list[str]
    left_alone: int


class DoneAnswer(Answer):
    """The answer to `done`."""

    task: TaskJson
    evidence: list[EvidenceJson]
    not_run: list[str]


class FailAnswer(Answer):
    """The answer to `fail`."""

    task: TaskJson


class LandAnswer(Answer):
    """The answer to `land`; `position` is null once it has landed."""

    landing: LandingJson
    new: bool
    position: int | None


class NextAnswer(Answer):
    """The answer to `next`."""

    task: TaskJson
    claims: list[ClaimJson]
    resumed: bool
    feedback: list[LessonJson]
    branches: list[str]
    handoff: HandoffJson | None
    context: str
    rules: CarriedRulesJson | None
    rescued: NotRequired[str]


class ReleaseAnswer(Answer):
    """The answer to `release`; `next` has who gets each pattern."""

    released: list[str]
    commit: str | None
    next: dict[str, str]


class PositionAnswer(Answer, PositionJson):
    """The answer to `sync`."""


class UpdateAnswer(Answer, PositionJson):
    """The answer to `sync --update`; `updated` is null if there was nothing to do."""

    updated: UpdateMethod | None
    before: str
    checks: list[UpdateCheckJson]


SyncAnswer = PositionAnswer | UpdateAnswer
