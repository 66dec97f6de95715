"""The types of workspaces, misplaced changes and commits in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.json_time import Time
from landlane.workspaces.misplaced import ChangeState
from landlane.workspaces.model import WorkspaceKind, WorkspaceState
from landlane.workspaces.unauthorized_writes import BreachKind, BreachState


class WorkspaceJson(TypedDict):
    """A checkout made for a task."""

    id: str
    task: str
    attempt: int
    agent: str
    session: str
    kind: WorkspaceKind
    path: str
    branch: str
    base: str | None
    target: str | None
    offline: bool
    state: WorkspaceState
    environment: dict[str, str]
    rescue: str | None
    merged: bool
    why: str | None
    opened_at: Time
    closed_at: Time | None


class SurveyedWorkspaceJson(WorkspaceJson):
    """A checkout made for a task, with its status on disk."""

    bytes: int
    age_seconds: int
    is_there: bool
    is_held: bool
    behind: int | None
    stale: bool
    task_title: str | None
    task_ended_as: str | None
    uncommitted: int | None
    seen_at: Time | None
    removable: bool


class MisplacedChangeJson(TypedDict):
    """A change in the wrong checkout."""

    path: str
    checkout: str
    state: ChangeState
    new: bool
    agent: str | None
    workspace: str | None
    choices: list[str]
    changed_at: Time | None


class BreachJson(TypedDict):
    """An unauthorized write."""

    id: str
    state: BreachState
    kind: BreachKind
    agent: str
    holder: str | None
    task: str | None
    checkout: str
    paths: list[str]
    blocking: bool
    at: Time
    ref: str


class TrailersJson(TypedDict):
    """The trailers of a commit."""

    agent: str
    session: str
    task: str | None
    tokens: list[int]
