"""Gates read from the store: one, those that wait, those of a task, and a person's last word on something."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.gates.model import ANSWERED, APPROVED, WAITING, Gate, covers
from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot

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


def get_gate(repo: Repository, gate_id: str) -> Gate:
    """One gate.

    Raises:
        Malformed: there is none of this id.
    """
    document = repo.store.view(lambda snapshot: records.find(snapshot, NOUN, gate_id))
    if document is None:
        raise unknown_gate(gate_id)
    return gate_from(document)


def gates_in(snapshot: Snapshot, states: Sequence[str] = (WAITING,)) -> list[Gate]:
    """The gates in these states, in the order in which they were asked; all without states."""
    return [gate_from(document) for document in records.all_of(snapshot, NOUN, states)]


def list_gates(repo: Repository, states: Sequence[str] = (WAITING,)) -> list[Gate]:
    """What waits for a person, the riskiest first; of the same risk, who has waited longest."""
    found = repo.store.view(lambda snapshot: gates_in(snapshot, states))
    return sorted(found, key=lambda gate: (-gate.risk, gate.asked_at, len(gate.id), gate.id))


def gates_of(snapshot: Snapshot, task_id: str, state: str = "") -> list[Gate]:
    """The gates of a task, the newest last."""
    return [gate_from(document) for document in records.by_key(snapshot, NOUN, task_id, state)]


def find_approval(snapshot: Snapshot, kind: str, about: Mapping[str, Any]) -> Gate | None:
    """The newest answer to a question of this kind about exactly this, if a person said yes to it."""
    known = [gate for gate in gates_in(snapshot, ANSWERED) if gate.kind == kind]
    answers = sorted((gate for gate in known if covers(gate, about)), key=lambda gate: gate.answered_at)
    return answers[-1] if answers and answers[-1].state == APPROVED else None
