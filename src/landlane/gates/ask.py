"""Ask a person: open a gate; its task pauses meanwhile.

A task at a gate is `waiting_for_person`. The answer gives it back to its owner if that still lives; otherwise
it goes into the queue, and whoever takes it next reads the answer first. Each of these is one transaction: a
task is always somebody's, the gate's or the queue's, and never two of these. What happens to its claims
meanwhile is told in `pause_task.py`.
"""

from __future__ import annotations

from landlane.errors import WaitsForPerson
from landlane.gates.model import (
    ANSWERED,
    LONGEST_WHY,
    WAITING,
    WITHDRAWN,
    Gate,
    check_question,
    is_same_question,
    risk_of,
)
from landlane.gates.pause_task import (
    rest,
    why_at_rest,
)
from landlane.gates.records import (
    NOUN,
    find_approval,
    gates_in,
    gates_of,
    get_gate,
    list_gates,
)
from landlane.roles.require_person import check_person
from landlane.sessions.leases import require_live
from landlane.sessions.read import find_ancestors
from landlane.store import records
from landlane.tasks.model import Task
from landlane.tasks.records import get_in, owned, who
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction


__all__ = [
    "ask",
    "ask_freely",
    "check_person",
    "find_approval",
    "gates_in",
    "gates_of",
    "get_gate",
    "list_gates",
    "open_gate_in",
]


# ------------------------------------------------------------------------------------------ asking


def ask(
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
    """The owner of a task asks a person, and the task rests; asking the same again finds the same gate.

    Raises:
        Malformed: the question cannot be kept.
        Stale: the task is not this session's any more.
        WaitsForPerson: another question about the task has no answer yet.
    """
    asked = check_question(kind, why, about)

    def work(tx: Transaction) -> Gate:
        me = require_live(tx, session)
        for gate in reversed(gates_of(tx, task_id)):
            if gate.state != WITHDRAWN and is_same_question(gate, kind, why, asked):
                _check_asker(tx, me, gate)
                return gate
        _check_no_other(tx, me, task_id)
        task = owned(tx, me, task_id, by_hands=True)
        return open_gate_in(
            tx, repo, me, task=task, kind=kind, why=why, about=asked, risk=risk, evidence=evidence
        )

    return repo.change(work)


def _check_asker(tx: Transaction, me: Session, gate: Gate) -> None:
    """Whoever asks again must be the one who may ask: it waits, or has the task in hand."""
    if gate.state != WAITING or gate.session not in kin(tx, me):
        owned(tx, me, gate.task, by_hands=True)


def kin(tx: Transaction, me: Session) -> set[str]:
    """A session, and those for whom it may ask: the gate is theirs, whoever of them asked."""
    return {me.id, *find_ancestors(tx, me.id)}


def _check_no_other(tx: Transaction, me: Session, task_id: str) -> None:
    """Refuse a second question while the first has no answer: either could let the task go on."""
    for gate in gates_of(tx, task_id, WAITING):
        if gate.session in kin(tx, me):
            raise WaitsForPerson(
                f"{task_id} waits for the answer to {gate.id} already: {gate.why}",
                code="GATE_OPEN",
                hint=f"wait for it, or `landlane gate withdraw {gate.id}` and ask anew",
                gate=gate.id,
            )


def ask_freely(
    repo: Repository,
    session: Session,
    kind: str,
    why: str,
    about: Mapping[str, Any],
    *,
    risk: int | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Gate:
    """Ask for something that belongs to no task, such as a deploy; nothing rests meanwhile.

    Asking the same again finds the same gate, or its answer.

    Raises:
        Malformed: the question cannot be kept.
    """
    asked = check_question(kind, why, about)

    def work(tx: Transaction) -> Gate:
        me = require_live(tx, session)
        for gate in reversed(gates_in(tx, (WAITING, *ANSWERED))):
            if gate.kind == kind and dict(gate.about) == asked and (not gate.task or gate.state != WAITING):
                return gate
        return open_gate_in(
            tx, repo, me, task="", kind=kind, why=why, about=asked, risk=risk, evidence=evidence
        )

    return repo.change(work, areas={f"//gate:{kind}": True})


def open_gate_in(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    *,
    task: Task | str,
    kind: str,
    why: str,
    about: Mapping[str, Any],
    risk: int | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Gate:
    """Open a gate inside a transaction, and let its task rest: `waiting_for_person`, with its owner.

    The task's claims go to the gate. A task that rests already, or has no owner, only gets the gate.
    `session` is who asks in the stead of the owner, or nobody.

    Raises:
        Malformed: the question cannot be kept.
        NotAllowed: the task cannot rest any more.
    """
    asked = check_question(kind, why[:LONGEST_WHY], about)
    found = get_in(tx, task) if isinstance(task, str) and task else task
    gate = Gate(
        id=records.next_id(tx, NOUN),
        task=found.id if isinstance(found, Task) else "",
        kind=kind,
        why=why[:LONGEST_WHY],
        about=asked,
        agent=session.agent if session is not None else "",
        session=session.id if session is not None else "",
        asked_at=repo.store.wall_of(tx.now),
        risk=risk_of(kind) if risk is None else risk,
        evidence=dict(evidence or {}),
    )
    if isinstance(found, Task):
        gate = rest(tx, repo, found, gate)
    records.put(tx, NOUN, as_dict(gate), "asked", session)
    if isinstance(found, Task):
        facts = {"task": found.id, "gate": gate.id, "why": why_at_rest(gate), "before": gate.before}
        tx.record("task.asked", *who(session), facts)
    return gate


# ------------------------------------------------------------------------------------------ answering
