"""What a supervisor is given for one attempt, and what it returns."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from landlane.repository import Repository
    from landlane.workers.agents import Agent

    T = TypeVar("T")


@value
class WorkOrder:
    """Which task is to be worked on, by whom and in which role; `orchestrator` is whoever asks for it."""

    task: str
    agent: Agent
    role: str
    orchestrator: str = ""
    is_offline: bool = False


@value
class Workplace:
    """What a keeper works with, opened in its own process."""

    repo: Repository
    state: str  # the folder of the state


@value
class Outcome:
    """What became of an attempt: landing, done, review, waiting, lost, or what a judge of retries came to."""

    kind: str
    why: str = ""
    code: str = ""
    head: str = ""
    usage: dict[str, Any] | None = None
    keeps_workspace: bool = False  # until what it made has landed, somebody may come back to it
