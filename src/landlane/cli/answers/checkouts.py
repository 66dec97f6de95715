"""The answers of the commands under "Checkouts"."""

from __future__ import annotations

from typing import TypedDict

from landlane.cli.answers.base import Answer
from landlane.rescue.json_types import RescuedChangeJson, RescueJson
from landlane.sandbox.model import GuaranteeState, Promise
from landlane.workspaces.json_types import SurveyedWorkspaceJson, WorkspaceJson


class EvictedCache(TypedDict):
    """A cache that was deleted."""

    path: str
    bytes: int


class ListedRescue(RescueJson):
    """Saved work with the title of its task."""

    task_title: str | None


class SandboxPromise(TypedDict):
    """Whether the sandbox keeps a promise, and by what means."""

    name: Promise
    state: GuaranteeState
    by: str | None
    why: str | None


class PrunedWorkspace(TypedDict):
    """A workspace that was closed, or why it was kept."""

    id: str
    path: str
    outcome: str
    closed: bool
    rescue: str | None


class ExecAnswer(Answer):
    """The answer to `exec`."""

    exit: int
    agent: str
    role: str
    task: str | None
    workspace: str | None
    branch: str | None
    head: str | None
    rescue: str | None
    sandbox: str
    promises: list[SandboxPromise]


class RescueDropAnswer(Answer):
    """The answer to `rescue drop`."""

    rescue: RescueJson


class RescueListAnswer(Answer):
    """The answer to `rescue list`."""

    rescues: list[ListedRescue]


class RescueRestoreAnswer(Answer):
    """The answer to `rescue restore`."""

    rescue: RescueJson
    path: str
    notes: list[str]


class RescueShowAnswer(Answer):
    """The answer to `rescue show`."""

    rescue: ListedRescue
    changes: list[RescuedChangeJson]


class RescueTakeAnswer(Answer):
    """The answer to `rescue take`: the id, or null if there was nothing to save."""

    rescue: str | None


class WorkspaceCloseAnswer(Answer):
    """The answer to `workspace close`."""

    workspace: WorkspaceJson
    rescue: str | None
    merged: bool
    notes: list[str]


class WorkspaceEnvAnswer(Answer):
    """The answer to `workspace env`."""

    environment: dict[str, str]


class WorkspaceListAnswer(Answer):
    """The answer to `workspace list`."""

    workspaces: list[SurveyedWorkspaceJson]


class WorkspaceOpenAnswer(Answer):
    """The answer to `workspace open`."""

    workspace: WorkspaceJson
    new: bool
    notes: list[str]
    branches: list[str]
    rescues: list[str]


class WorkspacePruneAnswer(Answer):
    """The answer to `workspace prune`."""

    workspaces: list[PrunedWorkspace]
    evicted: list[EvictedCache]
    packed: int
