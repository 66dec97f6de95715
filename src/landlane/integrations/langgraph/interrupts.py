"""Interrupts that are gates: the graph stops until a person has answered, whatever else resumes it."""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import Any

from langgraph.types import interrupt

from landlane.api import Landlane
from landlane.errors import Malformed
from landlane.gates.model import APPROVAL, WAITING, Gate
from landlane.ids import digest
from landlane.values import value


@value
class Running:
    """The node that runs: where, as whom, and on which task."""

    folder: str
    agent: str
    role: str
    task: str


running: ContextVar[Running | None] = ContextVar("running", default=None)


def ask_person(why: str, *, kind: str = APPROVAL, about: object = "") -> Gate:
    """Ask a person about the task of this node; comes back with the answer, and stops the graph until then.

    `about` is what exactly is approved: a text as `Gates.ask` takes it, or any plain value, which is bound by
    its hash. Whatever resumes the graph, only a person's answer lets it pass here.

    Raises:
        Malformed: no node of a bridge with a task is running, or the question cannot be kept.
    """
    here = running.get()
    if here is None or not here.task:
        raise Malformed(
            "there is no task to ask about",
            code="GRAPH_NO_TASK",
            hint="call it in a node of a bridge whose state has a `task`",
        )
    bound = (
        about if isinstance(about, str) else f"hash={digest(json.dumps(about, sort_keys=True, default=repr))}"
    )
    while True:
        with Landlane(here.folder, agent=here.agent, role=here.role) as landlane:
            gate = landlane.gates.ask(here.task, why, kind=kind, about=bound)
        if gate.state != WAITING:
            return gate
        interrupt(told(gate))  # whatever is said to the graph, the gate is asked again


def told(gate: Gate) -> dict[str, Any]:
    """What whoever drives the graph is told of a gate."""
    return {
        "gate": gate.id,
        "task": gate.task,
        "kind": gate.kind,
        "why": gate.why,
        "about": dict(gate.about),
        "hint": f"a person answers: landlane gate approve {gate.id}; then run the graph again",
    }
