"""Gates read from the store: one, those that wait, those of a task, and a person's last word on something."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.gates.model import ANSWERED, APPROVED, WAITING, Gate, covers
from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.context import Context
    from landlane.store.interface import Reading

NOUN = "gate"


def gate_from(document: records.Document) -> Gate:
    """A gate from its record."""
    return Gate(**document)


def unknown_gate(gate_id: str) -> Malformed:
    """There is no such gate."""
    return Malformed(
        f"there is no gate {gate_id[:40]!r}",
        code="UNKNOWN_GATE",
        hint="`landlane gate list --all` shows them",
    )


def get_gate(context: Context, gate_id: str) -> Gate:
    """One gate.

    Raises:
        Malformed: there is none of this id.
    """
    document = context.store.view(lambda reading: records.find(reading, NOUN, gate_id))
    if document is None:
        raise unknown_gate(gate_id)
    return gate_from(document)


def gates_in(reading: Reading, states: Sequence[str] = (WAITING,)) -> list[Gate]:
    """The gates in these states, in the order in which they were asked; all without states."""
    return [gate_from(document) for document in records.all_of(reading, NOUN, states)]


def list_gates(context: Context, states: Sequence[str] = (WAITING,)) -> list[Gate]:
    """What waits for a person, the riskiest first; of the same risk, who has waited longest."""
    found = context.store.view(lambda reading: gates_in(reading, states))
    return sorted(found, key=lambda gate: (-gate.risk, gate.asked_at, len(gate.id), gate.id))


def gates_of(reading: Reading, task_id: str, state: str = "") -> list[Gate]:
    """The gates of a task, the newest last."""
    return [gate_from(document) for document in records.by_key(reading, NOUN, task_id, state)]


def find_approval(reading: Reading, kind: str, about: Mapping[str, Any]) -> Gate | None:
    """The newest answer to a question of this kind about exactly this, if a person said yes to it."""
    known = [gate for gate in gates_in(reading, ANSWERED) if gate.kind == kind]
    answers = sorted((gate for gate in known if covers(gate, about)), key=lambda gate: gate.answered_at)
    return answers[-1] if answers and answers[-1].state == APPROVED else None
