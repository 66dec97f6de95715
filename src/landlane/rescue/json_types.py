"""The types of rescues in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.json_time import Time
from landlane.rescue.list_changes import RescuedChangeKind


class RescueJson(TypedDict):
    """Work that was saved before something was removed."""

    id: str
    agent: str | None
    session: str | None
    task: str | None
    attempt: int | None
    workspace: str | None
    reason: str
    at: Time
    bytes: int
    files: int
    commits: int
    kind: str
    head: str | None
    branch: str | None
    operation: str | None
    ref: str
    commit: str
    root: str
    notes: list[str]


class RescuedChangeJson(TypedDict):
    """One file in a rescue; the numbers of lines are null for a binary file."""

    path: str
    change: RescuedChangeKind
    added: int | None
    removed: int | None
