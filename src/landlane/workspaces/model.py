"""Workspaces: a checkout and a branch for one task, and the states that a workspace goes through."""

from __future__ import annotations

from enum import StrEnum

from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.sessions.model import Session


class WorkspaceState(StrEnum):
    """The state of a workspace."""

    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"  # opening it failed, and everything that was made was removed


OPENING, OPEN, CLOSING, CLOSED, FAILED = WorkspaceState
IN_TRANSITION = (OPENING, CLOSING)
ON_DISK = (OPENING, OPEN, CLOSING)  # or possibly on disk

# `Workspace.updated` makes every change and checks it here. A workspace that cannot be closed is open again.
TRANSITIONS: Mapping[WorkspaceState, Sequence[WorkspaceState]] = {
    OPENING: (OPEN, FAILED),
    OPEN: (CLOSING,),
    CLOSING: (OPEN, CLOSED),
    CLOSED: (),
    FAILED: (),
}


class WorkspaceKind(StrEnum):
    """A worktree shares the repository; a clone has a git directory of its own and can be sandboxed."""

    WORKTREE = "worktree"
    CLONE = "clone"


WORKTREE, CLONE = WorkspaceKind


@value
class Workspace:
    """One workspace. Times are wall-clock milliseconds."""

    id: str
    task: str
    attempt: int
    agent: str
    session: str
    machine: str
    home: str  # the common git directory of the repository it was made from
    kind: WorkspaceKind
    path: str
    branch: str
    state: WorkspaceState
    opened_at: int
    base: str = ""
    target: str = ""
    is_offline: bool = False
    has_new_branch: bool = False
    slots: dict[str, str] = {}  # noqa: RUF012 - never changed: environment variable → id of the slot
    environment: dict[str, str] = {}  # noqa: RUF012
    process: dict[str, object] = {}  # noqa: RUF012 - the process that opens or closes it now
    rescue: str = ""
    is_merged: bool = False
    why: str = ""
    closed_at: int = 0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Workspace:
        """Return the workspace that a record describes."""
        state, kind = WorkspaceState(document["state"]), WorkspaceKind(document["kind"])
        fields: dict[str, Any] = {**document, "state": state, "kind": kind}
        return cls(**fields)

    def updated(self, **changes: object) -> Workspace:
        """Return the workspace with some fields changed.

        Raises:
            ValueError: `TRANSITIONS` does not allow the change of its state.
        """
        now = replace(self, **changes)
        if now.state != self.state and now.state not in TRANSITIONS[self.state]:
            raise ValueError(f"{self.id} is {self.state} and cannot become {now.state}")
        return now

    def is_owned_by(self, session: Session) -> bool:
        """Return whether it belongs to this session or to another session of the same agent."""
        return session.id == self.session or session.agent == self.agent
