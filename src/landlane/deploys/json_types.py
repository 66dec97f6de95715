"""The types of positions, updates and deploys in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.deploys.model import DeployState
from landlane.json_time import Time


class PositionJson(TypedDict):
    """Where a checkout is compared with the target branch."""

    branch: str | None
    target: str
    remote: str | None
    behind: int
    ahead: int
    tip: str
    head: str
    base: str | None
    is_fresh: bool
    dirty: bool
    changed: list[str]


class UpdateCheckJson(TypedDict):
    """A check that ran after an update."""

    name: str
    passed: bool
    exit: int
    late: bool
    runs: int
    output: str


class DeployJson(TypedDict):
    """A deploy."""

    id: str
    target: str
    state: DeployState
    commit: str
    agent: str
    session: str
    task: str | None
    command: str
    began: Time
    ended: Time | None
    exit: int | None
    reason: str | None
    verified: bool
    verify: str | None
    seconds: float | None
    output: str | None


class LiveDeployJson(TypedDict):
    """The deploy that is live on a target."""

    id: str
    commit: str
    agent: str
    at: Time | None
    verified: bool


class NamedCommitJson(TypedDict):
    """A commit with its author, and its agent, which is empty if it names none."""

    commit: str
    subject: str
    agent: str
    author: str
    at: Time
