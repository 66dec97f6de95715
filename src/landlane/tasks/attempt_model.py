"""Attempts as values: one worker's try at a task."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


RUNNING = "running"

ENDED = "ended"


@value
class Attempt:
    """One try. Instants are the calendar's, in milliseconds; `orchestrator` is what started it."""

    id: str
    task: str
    attempt: int
    lineage: str
    agent: str
    role: str
    client: str  # the coding client, or `command` for a worker of one's own
    session: str
    machine: str
    keeper: Mapping[str, Any]  # the process that looks after it
    started_at: int
    orchestrator: str = ""
    run: str = ""  # the record of its processes
    state: str = RUNNING
    seen_at: int = 0  # the last sign of life
    ended_at: int = 0
    doing: str = ""
    code: str = ""  # why it failed, in a word; empty when it did not
    reason: str = ""
    outcome: str = ""  # what became of the task: landing, done, review, retry, escalate, abort, returned
    head: str = ""
    usage: Mapping[str, Any] | None = None  # unknown is not zero
    log: str = ""
