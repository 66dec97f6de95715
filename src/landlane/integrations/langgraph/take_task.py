"""Taking the task of a thread when a node begins: handed over, ready, in hand, or waiting for a person."""

from __future__ import annotations

import time
from typing import Any

from langgraph.types import interrupt

from landlane.claims.model import Refused
from landlane.clock import rfc3339
from landlane.errors import Held
from landlane.handoffs.model import SENT
from landlane.integrations.langgraph.interrupts import told
from landlane.tasks.model import AT_WORK, READY, WAITING, Task
from landlane.tasks.records import pattern_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.api import Landlane

    Refusals = list[dict[str, Any]]


_LONGEST_NAP_SECONDS = 1.0  # between two looks, each of which is a sign of life


def take(landlane: Landlane, task_id: str) -> Refusals:
    """Have the task in hand, or say who is in the way: an empty list is a yes.

    A task that waits for a person stops the graph here until it is answered.
    """
    while True:
        task = landlane.tasks.get(task_id)
        is_own = task.session == landlane.session.id
        if task.state in AT_WORK and is_own:
            return []
        if task.state == WAITING:
            _stop_for_person(landlane, task)
            continue
        if task.state != READY:
            return [_in_the_way(task, f"{task.id} is {task.state}: {task.why}")]
        handoff = landlane.handoffs.show(task_id)
        if handoff is not None and handoff.state == SENT:
            return _accept(landlane, task)
        if landlane.tasks.take(task_id) is not None:
            return []
        if not _wait_for_its_time(landlane, task):
            return _who_holds(landlane, task)


def _stop_for_person(landlane: Landlane, task: Task) -> None:
    """Stop the graph at the gate of a task, also where the node asked itself: the gate has its claims now."""
    for gate in landlane.gates.waiting():
        if gate.task == task.id:
            interrupt(told(gate))


def _accept(landlane: Landlane, task: Task) -> Refusals:
    try:
        outcome = landlane.handoffs.accept(task.id)
    except Held as error:
        return [{"pattern": task.id, "code": error.code, "hint": error.hint, **error.facts}]
    return refusals_of(landlane, outcome) if isinstance(outcome, Refused) else []


def _wait_for_its_time(landlane: Landlane, task: Task) -> bool:
    """Wait as long as the back-off of a retry says; tells whether there was one."""
    until = landlane.retries.budget(task.id).held.get(task.id, 0) / 1000
    if until <= time.time():
        return False
    while (left := until - time.time()) > 0:
        time.sleep(min(left, _LONGEST_NAP_SECONDS))
    return True


def _who_holds(landlane: Landlane, task: Task) -> Refusals:
    paths = [text for text, _ in pattern_pairs(task.stored_paths)]
    held = [one for one in landlane.claims(*paths) if paths and one.session != landlane.session.id]
    if not held:
        return [_in_the_way(landlane.tasks.get(task.id), f"{task.id} cannot be had now")]
    return [
        {
            "pattern": one.pattern,
            "holder": one.agent,
            "until": landlane.when(one.until).isoformat(),
            "code": "CLAIM_HELD",
            "hint": f"{one.agent} holds it for {one.task or 'its own work'}",
        }
        for one in held
    ]


def _in_the_way(task: Task, why: str) -> dict[str, Any]:
    return {"pattern": task.id, "holder": task.owner, "until": "", "code": "TASK_NOT_READY", "hint": why}


def refusals_of(landlane: Landlane, outcome: Refused) -> Refusals:
    """A refusal of claims as plain values, as they go into the state of a graph."""
    return [
        {
            "pattern": one.pattern,
            "holder": one.holder,
            "until": rfc3339(round(landlane.when(one.until).timestamp() * 1000)),
            "code": outcome.code,
            "hint": one.hint,
        }
        for one in outcome.refused
    ]
