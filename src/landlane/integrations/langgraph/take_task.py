"""Take the task of a thread when a node begins: accept a handoff, or take it when it is ready."""

from __future__ import annotations

import time
from typing import Any

from langgraph.types import interrupt

from landlane.clock import rfc3339
from landlane.errors import Held
from landlane.handoffs.model import SENT
from landlane.integrations.langgraph.interrupts import describe_gate
from landlane.tasks.model import IN_PROGRESS, READY, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.api import Landlane, Refused, Task

    Refusals = list[dict[str, Any]]


_MAX_SLEEP_SECONDS = 1.0


def take(landlane: Landlane, task_id: str) -> Refusals:
    """Take the task; return why that is refused, or an empty list.

    A task that waits for a person stops the graph here until there is an answer.
    """
    while True:
        task = landlane.tasks.get(task_id)
        is_own = task.session == landlane.session.id
        if task.state in IN_PROGRESS and is_own:
            return []
        if task.state == WAITING:
            _stop_for_person(landlane, task)
            continue
        if task.state != READY:
            return [_not_ready(task, f"{task.id} is {task.state}: {task.why}")]
        handoff = landlane.handoffs.show(task_id)
        if handoff is not None and handoff.state == SENT:
            return _accept(landlane, task)
        if landlane.tasks.take(task_id) is not None:
            return []
        if not _wait_for_backoff(landlane, task):
            return _find_holders(landlane, task)


def _stop_for_person(landlane: Landlane, task: Task) -> None:
    """Stop the graph at the gate of a task, also if this node opened it."""
    for gate in landlane.gates.waiting():
        if gate.task == task.id:
            interrupt(describe_gate(gate))


def _accept(landlane: Landlane, task: Task) -> Refusals:
    try:
        outcome = landlane.handoffs.accept(task.id)
    except Held as error:
        return [{"pattern": task.id, "code": error.code, "hint": error.hint, **error.facts}]
    return [] if outcome else refusals_of(outcome)


def _wait_for_backoff(landlane: Landlane, task: Task) -> bool:
    """Wait until the back-off of a retry is over; return whether there was one."""
    until = landlane.retries.budget(task.id).held.get(task.id)
    if until is None or until.timestamp() <= time.time():
        return False
    while (rest := until.timestamp() - time.time()) > 0:
        time.sleep(min(rest, _MAX_SLEEP_SECONDS))
    return True


def _find_holders(landlane: Landlane, task: Task) -> Refusals:
    held = [one for one in landlane.claims(*task.paths) if task.paths and one.session != landlane.session.id]
    if not held:
        return [_not_ready(landlane.tasks.get(task.id), f"{task.id} cannot be had now")]
    return [
        {
            "pattern": one.pattern,
            "holder": one.agent,
            "until": rfc3339(round(one.until.timestamp() * 1000)),
            "code": "CLAIM_HELD",
            "hint": f"{one.agent} holds it for {one.task or 'its own work'}",
        }
        for one in held
    ]


def _not_ready(task: Task, why: str) -> dict[str, Any]:
    return {"pattern": task.id, "holder": task.owner, "until": "", "code": "TASK_NOT_READY", "hint": why}


def refusals_of(outcome: Refused) -> Refusals:
    """Return refused claims as plain values for the state of a graph."""
    return [
        {
            "pattern": one.pattern,
            "holder": one.holder,
            "until": rfc3339(round(one.until.timestamp() * 1000)),
            "code": outcome.code,
            "hint": one.hint,
        }
        for one in outcome.refused
    ]
