"""Workspaces: a checkout and a branch of its own for one task, and the states it goes through."""

from __future__ import annotations

from landlane.values import value

OPENING = "opening"
OPEN = "open"
CLOSING = "closing"
CLOSED = "closed"
FAILED = "failed"

# What lies on the disk, or may.
THERE = (OPENING, OPEN, CLOSING)

WORKTREE = "worktree"
CLONE = "clone"
KINDS = (WORKTREE, CLONE)


@value
class Workspace:
    """A workspace as it stands. Instants are the calendar's, in milliseconds."""

    id: str
    task: str
    attempt: int
    agent: str
    session: str
    machine: str
    home: str  # the common git directory of the repository it was made from
    kind: str
    path: str
    branch: str
    state: str
    opened_at: int
    base: str = ""
    target: str = ""
    is_offline: bool = False
    has_new_branch: bool = False
    slots: dict[str, str] = {}  # noqa: RUF012 - never changed: environment variable → id of the slot
    environment: dict[str, str] = {}  # noqa: RUF012
    process: dict[str, object] = {}  # noqa: RUF012 - who opens or closes it now
    rescue: str = ""
    is_merged: bool = False
    why: str = ""
    closed_at: int = 0


def folder_name(task: str, agent: str, among: frozenset[str] | set[str]) -> str:
    """A name for the workspace's folder that is none of these."""
    plain = f"{task}-{agent}"
    name, count = plain, 1
    while name in among:
        count += 1
        name = f"{plain}-{count}"
    return name
