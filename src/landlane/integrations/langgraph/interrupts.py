"""Gates as interrupts: the graph stops until a person has answered, whatever else resumes it."""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import Any

from langgraph.types import interrupt

from landlane.api import Gate, Landlane
from landlane.errors import Malformed
from landlane.gates.model import APPROVAL, WAITING
from landlane.ids import digest
from landlane.values import value


@value
class RunningNode:
    """The node that is running: its folder, agent, role and task."""

    folder: str
    agent: str
    role: str
    task: str


running: ContextVar[RunningNode | None] = ContextVar("running", default=None)


def ask_person(why: str, *, kind: str = APPROVAL, about: object = "") -> Gate:
    """Ask a person about the task of this node; the graph stops until there is an answer, and returns it.

    `about` is the subject of the approval: a text as `Gates.ask` takes it, or any plain value, of which the
    hash is approved. Whatever resumes the graph, it continues only after a person has answered.

    Raises:
        Malformed: no node of a bridge with a task is running, or the question cannot be stored.
    """
    here = running.get()
    if here is None or not here.task:
        raise Malformed(
            "there is no task to ask about",
            code="GRAPH_NO_TASK",
            hint="call it in a node of a bridge whose state has a `task`",
        )
    subject = about
    if not isinstance(subject, str):
        subject = f"hash={digest(json.dumps(about, sort_keys=True, default=repr))}"
    while True:
        with Landlane(here.folder, agent=here.agent, role=here.role) as landlane:
            gate = landlane.gates.ask(here.task, why, kind=kind, about=subject)
        if gate.state != WAITING:
            return gate
        interrupt(describe_gate(gate))  # whatever resumes the graph, the gate is checked again


def describe_gate(gate: Gate) -> dict[str, Any]:
    """Return what the caller of the graph gets to know about a gate."""
    return {
        "gate": gate.id,
        "task": gate.task,
        "kind": gate.kind,
        "why": gate.why,
        "about": dict(gate.about),
        "hint": f"a person answers: landlane gate approve {gate.id}; then run the graph again",
    }
