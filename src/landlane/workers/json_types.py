"""The types of the summary of a run in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.landing.json_types import TargetFailureJson


class TaskReasonJson(TypedDict):
    """A task that is not done, and why; a task that waits for a person names the item of the inbox."""

    task: str
    title: str
    state: str
    why: str
    inbox: str | None
    question: str | None


class RunSummaryJson(TypedDict):
    """What a run did."""

    done: list[str]
    landed: list[str]
    failed: list[TaskReasonJson]
    waiting_for_person: list[TaskReasonJson]
    left: list[TaskReasonJson]
    attempts: int
    cost_usd: float
    unknown_costs: int
    seconds: float
    paused: str | None
    stopped: bool
    rescues: list[str]
    target_failure: TargetFailureJson | None


class PreflightProblemJson(TypedDict):
    """Why no worker can be started, and how to fix it."""

    message: str
    fix: str
    lines: list[str]
