"""The answers of the commands under "Decide"."""

from __future__ import annotations

from typing import Literal, TypedDict

from landlane.claims.json_types import ClaimJson
from landlane.cli.answers.base import Answer
from landlane.cli.answers.run import ShownTargetAnswer
from landlane.gates.json_types import GateJson
from landlane.handoffs.json_types import HandoffJson
from landlane.inbox.json_types import (
    InboxItemJson,
    ListedGateJson,
    ListedLandingJson,
    ShownGateJson,
    ShownLandingJson,
)
from landlane.landing.json_types import LandingJson
from landlane.reviews.json_types import ReviewJson
from landlane.status.json_types import HeadlineJson
from landlane.tasks.json_types import TaskJson


class DecidedGate(GateJson):
    """A gate, and who decided what."""

    decision: Literal["approved", "rejected"]
    by: str


class LandingDecision(TypedDict):
    """Who decided what about a landing, and about which commit."""

    id: str
    decision: Literal["approved", "rejected"]
    by: str
    head: str


class GateDecidedAnswer(Answer):
    """The answer to a decision about a question."""

    gate: DecidedGate


class LandingDecidedAnswer(Answer):
    """The answer to a decision about a landing."""

    gate: LandingDecision
    landing: LandingJson


GateApproveAnswer = GateDecidedAnswer | LandingDecidedAnswer
GateRejectAnswer = GateDecidedAnswer | LandingDecidedAnswer


class GateAskAnswer(Answer):
    """The answer to `gate ask` when it was approved."""

    gate: GateJson


class GateListAnswer(Answer):
    """The answer to `gate list`."""

    gates: list[ListedGateJson | ListedLandingJson]


class GateShowAnswer(Answer):
    """The answer to `gate show`."""

    gate: ShownGateJson | ShownLandingJson


class GateWithdrawAnswer(Answer):
    """The answer to `gate withdraw`."""

    gate: GateJson


class HandoffAcceptAnswer(Answer):
    """The answer to `handoff accept`."""

    task: TaskJson
    claims: list[ClaimJson]
    handoff: HandoffJson
    context: str


class HandoffAnswer(Answer):
    """The answer to `handoff`."""

    handoff: HandoffJson
    task: TaskJson


class HandoffDeclineAnswer(Answer):
    """The answer to `handoff decline`."""

    handoff: HandoffJson


class HandoffListAnswer(Answer):
    """The answer to `handoff list`."""

    handoffs: list[HandoffJson]


class HandoffShowAnswer(Answer):
    """The answer to `handoff show`; `handoff` is null if the last owner left the task without one."""

    handoff: HandoffJson | None
    context: str


class ReviewAdoptAnswer(Answer):
    """The answer to `review adopt`."""

    task: TaskJson


class ReviewGiveAnswer(Answer):
    """The answer to `review give`."""

    review: ReviewJson


class ReviewListAnswer(Answer):
    """The answer to `review list`."""

    reviews: list[ReviewJson]


class ReviewShowAnswer(Answer):
    """The answer to `review show`."""

    review: ReviewJson


class ReviewWithdrawAnswer(Answer):
    """The answer to `review withdraw`."""

    task: TaskJson


class InboxItemsAnswer(Answer):
    """The answer to `inbox`."""

    headline: HeadlineJson
    troubles: list[str]
    items: list[InboxItemJson]


class DeadTaskAnswer(Answer):
    """The answer to `inbox ID` of a task that failed for good."""

    task: TaskJson


class PausedWorkersAnswer(Answer):
    """The answer to `inbox workers`."""

    is_paused: bool
    troubles: list[str]


InboxAnswer = (
    InboxItemsAnswer
    | GateShowAnswer
    | ReviewShowAnswer
    | HandoffShowAnswer
    | DeadTaskAnswer
    | PausedWorkersAnswer
    | ShownTargetAnswer
)
