"""Read gates from the store."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.gates.model import ANSWERED, APPROVED, REJECTED, WAITING, Gate, is_about
from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot

NOUN = "gate"


def find_gate(snapshot: Snapshot, gate_id: str) -> Gate | None:
    """Return a gate, or None if there is none of this id."""
    document = records.find(snapshot, NOUN, gate_id) if gate_id else None
    return Gate.from_document(document) if document is not None else None


def unknown_gate(gate_id: str) -> Malformed:
    """Return the error for an id that no gate has."""
    return Malformed(
        f"no gate {gate_id[:40]}",
        code="UNKNOWN_GATE",
        hint="see all: landlane gate list --all",
    )


def get_gate(repo: Repository, gate_id: str) -> Gate:
    """Return a gate.

    Raises:
        Malformed: there is none of this id.
    """
    gate = repo.store.view(lambda snapshot: find_gate(snapshot, gate_id))
    if gate is None:
        raise unknown_gate(gate_id)
    return gate


def read_gates(snapshot: Snapshot, states: Sequence[str] = (WAITING,)) -> list[Gate]:
    """Return the gates in these states, oldest first; all of them without states."""
    return [Gate.from_document(document) for document in records.find_all(snapshot, NOUN, states)]


def list_gates(repo: Repository, states: Sequence[str] = (WAITING,)) -> list[Gate]:
    """Return the gates in these states, riskiest first, then oldest first."""
    gates = repo.store.view(lambda snapshot: read_gates(snapshot, states))
    return sorted(gates, key=lambda gate: (-gate.risk, gate.asked_at, len(gate.id), gate.id))


def gates_of_task(snapshot: Snapshot, task_id: str, state: str = "") -> list[Gate]:
    """Return the gates of a task, newest last."""
    return [Gate.from_document(document) for document in records.find_by_key(snapshot, NOUN, task_id, state)]


def is_given_up(snapshot: Snapshot, task_id: str, attempt: int) -> bool:
    """Return whether a person rejected what this attempt at a task asked, so that its failure is decided."""
    return any(gate.attempt == attempt for gate in gates_of_task(snapshot, task_id, REJECTED))


def find_approval(snapshot: Snapshot, kind: str, about: Mapping[str, Any]) -> Gate | None:
    """Return the newest answer to a question of this kind about exactly this, if it is an approval."""
    answers = [gate for gate in read_gates(snapshot, ANSWERED) if gate.kind == kind and is_about(gate, about)]
    # Of two answers in the same millisecond, the one to the later question counts.
    newest = max(reversed(answers), key=lambda gate: gate.answered_at, default=None)
    return newest if newest is not None and newest.state == APPROVED else None
