"""Open a gate: ask a person about a task, which is paused until the answer, or about something else.

A task at a gate is `waiting_for_person`. The answer returns it to its owner if that session is still alive.
Otherwise the task goes back into the queue, and its next owner reads the answer first. Each step is one
transaction, so a task always belongs to exactly one of: a session, the gate, the queue.
"""

from __future__ import annotations

from landlane.errors import WaitsForPerson
from landlane.gates.model import (
    ANSWERED,
    LONGEST_WHY,
    WAITING,
    WITHDRAWN,
    Gate,
    GateKind,
    check_question,
    is_same_question,
    score_risk,
)
from landlane.gates.pause_task import pause_reason, pause_task
from landlane.gates.records import NOUN, gates_of_task, read_gates
from landlane.sessions.leases import find_ancestors, require_live
from landlane.store import records
from landlane.tasks.model import BLOCKED, READY, Task
from landlane.tasks.records import actor_of, lock_task, require_owner
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction


def open_task_gate(
    repo: Repository,
    session: Session,
    task_id: str,
    kind: str,
    why: str,
    about: Mapping[str, Any],
    *,
    risk: int | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Gate:
    """Ask a person about a task of this session, and pause it; the same question again returns the same gate.

    Raises:
        Malformed: the question cannot be stored.
        Stale: the task no longer belongs to this session.
        WaitsForPerson: another question about the task has no answer yet.
    """
    stored = check_question(kind, why, about)

    def work(tx: Transaction) -> Gate:
        me = require_live(tx, session)
        speaks_for = sessions_spoken_for(tx, me)
        for gate in reversed(gates_of_task(tx, task_id)):
            if gate.state != WITHDRAWN and is_same_question(gate, kind, why, stored):
                if gate.state != WAITING or gate.session not in speaks_for:
                    require_owner(tx, me, task_id, allow_worker=True)
                return gate
        for gate in gates_of_task(tx, task_id, WAITING):
            if gate.session in speaks_for:
                raise WaitsForPerson(
                    f"{task_id} already waits for the answer to {gate.id}: {gate.why}",
                    code="GATE_OPEN",
                    hint=f"to ask something else, withdraw it first: landlane gate withdraw {gate.id}",
                    gate=gate.id,
                )
        waiting = lock_task(tx, task_id)
        is_untaken = waiting.state in (READY, BLOCKED) and not me.role  # before any agent takes it
        task = waiting if is_untaken else require_owner(tx, me, task_id, allow_worker=True)
        return open_gate_in(
            tx, repo, me, task=task, kind=kind, why=why, about=stored, risk=risk, evidence=evidence
        )

    return repo.change(work)


def sessions_spoken_for(tx: Transaction, session: Session) -> set[str]:
    """Return the ids of a session and of its ancestors: it may ask and withdraw questions for all of them."""
    return {session.id, *find_ancestors(tx, session.id)}


def open_gate(
    repo: Repository,
    session: Session,
    kind: str,
    why: str,
    about: Mapping[str, Any],
    *,
    risk: int | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Gate:
    """Ask a person about something that belongs to no task, such as a deploy; no task is paused.

    The same question again returns the same gate, with its answer if there is one.

    Raises:
        Malformed: the question cannot be stored.
    """
    stored = check_question(kind, why, about)

    def work(tx: Transaction) -> Gate:
        me = require_live(tx, session)
        for gate in reversed(read_gates(tx, (WAITING, *ANSWERED))):
            if gate.kind == kind and dict(gate.about) == stored and (not gate.task or gate.state != WAITING):
                return gate
        return open_gate_in(
            tx, repo, me, task=None, kind=kind, why=why, about=stored, risk=risk, evidence=evidence
        )

    return repo.change(work, areas={f"//gate:{kind}": True})


def open_gate_in(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    *,
    task: Task | None,
    kind: str,
    why: str,
    about: Mapping[str, Any],
    risk: int | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Gate:
    """Open a gate inside a transaction, and pause its task: `waiting_for_person`, with its owner.

    The task's claims go to the gate. A task that is paused already, or has no owner, only gets the gate.
    `session` asks for the owner; None if no session waits for the answer.

    Raises:
        Malformed: the question cannot be stored.
        NotAllowed: the task can no longer be paused.
    """
    stored = check_question(kind, why[:LONGEST_WHY], about)
    gate = Gate(
        id=records.next_id(tx, NOUN),
        task=task.id if task is not None else "",
        kind=GateKind(kind),
        why=why[:LONGEST_WHY],
        about=stored,
        agent=session.agent if session is not None else "",
        session=session.id if session is not None else "",
        asked_at=repo.store.wall_of(tx.now),
        risk=score_risk(kind) if risk is None else risk,
        evidence=dict(evidence or {}),
    )
    if task is not None:
        gate = pause_task(tx, repo, task, gate)
    records.put(tx, NOUN, as_dict(gate), "asked", session)
    if task is not None:
        facts = {"task": task.id, "gate": gate.id, "why": pause_reason(gate), "before": gate.before}
        tx.record("task.asked", *actor_of(session), facts)
    return gate
