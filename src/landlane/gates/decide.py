"""Approve, reject or withdraw a gate."""

from __future__ import annotations

from landlane.claims.holder_sessions import end_holder, return_claims
from landlane.errors import NotAllowed, Stale
from landlane.gates.model import APPROVED, REJECTED, WAITING, WITHDRAWN, Gate, GateState, digest_in
from landlane.gates.open import sessions_spoken_for
from landlane.gates.pause_task import RESUMABLE, find_living_owner
from landlane.gates.records import NOUN, find_gate, gates_of_task, read_gates, unknown_gate
from landlane.roles.require_person import check_person
from landlane.sessions.leases import find_live_session, require_live
from landlane.sessions.notices import add_notice
from landlane.sessions.worker_sessions import list_worker_sessions
from landlane.store import records
from landlane.tasks.lineage import renew_in
from landlane.tasks.model import ACTIVE, DEAD, READY, Task, TaskState, check_reason
from landlane.tasks.model import WAITING as TASK_WAITING
from landlane.tasks.records import actor_of, move_task
from landlane.units import exact_duration
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

_LANDLANE = "landlane"  # answers when a person did not in time


def answer_gate(
    repo: Repository, person: Session, gate_id: str, *, approve: bool, why: str = "", head: str = ""
) -> Gate:
    """Approve or reject as a person; the task resumes with its owner, or is queued again if that has ended.

    `head` is the beginning of the commit or hash that the person saw; the answer is refused for any other.

    Raises:
        Malformed: there is no such gate, or a rejection without a reason.
        NotAllowed: the session is not a person's, or the gate is not waiting.
        Stale: the gate is about something else than the person saw.
    """
    check_person(person)
    if why.strip() or not approve:
        check_reason(why)
    state = APPROVED if approve else REJECTED

    def work(tx: Transaction) -> Gate:
        require_live(tx, person)
        gate = _lock_gate(tx, gate_id, state)
        digest = digest_in(gate.about)
        if head and not digest.startswith(head):
            raise Stale(
                f"{gate_id} is about {digest[:12] or 'no commit'}, not about {head[:12]}",
                code="HEAD_MOVED",
                hint=f"look at it again: landlane gate show {gate_id}",
            )
        return _close_gate(tx, repo, gate, state, person, why)

    return repo.change(work)


def withdraw_gate(repo: Repository, session: Session, gate_id: str, why: str = "") -> Gate:
    """Withdraw a question of this session, and resume its task.

    Raises:
        Malformed: there is no such gate.
        NotAllowed: it is not waiting, or another session asked.
    """
    if why.strip():
        check_reason(why)

    def work(tx: Transaction) -> Gate:
        me = require_live(tx, session)
        gate = _lock_gate(tx, gate_id, WITHDRAWN)
        if gate.session not in sessions_spoken_for(tx, me) and not me.is_person:
            raise NotAllowed(
                f"{gate_id} was asked by {gate.agent or 'another session'}, not by {me.agent}",
                code="NOT_YOUR_GATE",
                hint=f"only the session that asked can withdraw it: landlane gate show {gate_id}",
                holder=gate.agent or None,
            )
        return _close_gate(tx, repo, gate, WITHDRAWN, me, why)

    return repo.change(work)


def expire_retry_gates(repo: Repository) -> list[Gate]:
    """Let the tasks fail for good whose question after the last attempt had no answer in time."""
    limit_ms = repo.settings.retries.answer_ms
    if limit_ms is None:
        return []
    now = repo.store.wall_of(repo.store.view(lambda snapshot: snapshot.now))

    def work(tx: Transaction, gate_id: str) -> Gate | None:
        gate = find_gate(tx, gate_id)
        if gate is None or gate.state != WAITING:
            return None  # answered meanwhile
        gate = _lock_gate(tx, gate_id, REJECTED)
        why = f"no answer within {exact_duration(limit_ms)}"
        return _close_gate(tx, repo, gate, REJECTED, None, why)

    waiting = repo.store.view(read_gates)
    due = [gate.id for gate in waiting if gate.about.get("retries") and now - gate.asked_at >= limit_ms]
    closed = [repo.change(lambda tx, gate_id=gate_id: work(tx, gate_id)) for gate_id in due]
    return [gate for gate in closed if gate is not None]


def withdraw_task_gates(tx: Transaction, task: Task) -> None:
    """Withdraw the gates of a task that goes on without an answer, and release the claims that they hold."""
    for gate in gates_of_task(tx, task.id, WAITING):
        end_holder(tx, gate.holder)
        withdrawn = gate.become(WITHDRAWN, answer="the task went on without an answer", claims=())
        records.put(tx, NOUN, as_dict(withdrawn), WITHDRAWN)
        tx.has_freed = True


def _lock_gate(tx: Transaction, gate_id: str, state: GateState) -> Gate:
    """Lock a gate that may change to this state, after its session and its task, which others lock first."""
    gate = find_gate(tx, gate_id)
    if gate is None:
        raise unknown_gate(gate_id)
    if gate.session:
        tx.one("session_lock", session=gate.session)
    if gate.task:
        tx.one("task_lock", task=gate.task)
    document = records.lock(tx, NOUN, gate_id)
    gate = Gate.from_document(document) if document is not None else gate
    gate.check_transition(state)
    return gate


def _close_gate(
    tx: Transaction, repo: Repository, gate: Gate, state: GateState, by: Session | None, why: str
) -> Gate:
    """Write the answer, return the claims, resume the task and notify the session that asked.

    Without `by` no person answered in time.
    """
    row = tx.one("task_lock", task=gate.task) if gate.task else None
    task = Task.from_row(row) if row is not None else None
    has_other_gates = any(
        other.id != gate.id for other in (gates_of_task(tx, gate.task, WAITING) if gate.task else ())
    )
    if task is not None and (has_other_gates or task.state != TASK_WAITING or task.attempt != gate.attempt):
        task = None  # it does not wait for this answer
    owner = find_living_owner(tx, repo, task) if task is not None else None
    closed = gate.become(
        state,
        answered_at=repo.store.wall_of(tx.now),
        answered_by=by.agent if by is not None else _LANDLANE,
        answer=why.strip(),
        is_resumed=owner is not None,
    )
    records.put(tx, NOUN, as_dict(closed), state, by)
    if owner is not None:
        return_claims(tx, repo, closed.holder, closed.claims, owner)
    else:
        end_holder(tx, closed.holder)
    if task is not None:
        _resume_task(tx, task, closed, owner, by)
    asker = owner or (find_live_session(tx, gate.session) if gate.session else None)
    by_id = by.id if by is not None else ""
    if by_id != gate.session and asker is not None:
        workers = [worker for worker in list_worker_sessions(tx, asker.id) if worker.id != by_id]
        for session in (asker, *workers):
            add_notice(tx, session.id, _answer_text(closed))
    tx.has_freed = True
    return closed


def _answer_text(gate: Gate) -> str:
    said = f": {gate.answer}" if gate.answer else ""
    return f"{gate.id} ({gate.kind}) was {gate.state} by {gate.answered_by}{said}. It was asked: {gate.why}"


def _resume_task(tx: Transaction, task: Task, gate: Gate, owner: Session | None, by: Session | None) -> None:
    state = READY
    if owner is not None:
        state = TaskState(gate.before) if gate.before in RESUMABLE else ACTIVE
    elif gate.state == REJECTED and not task.session:
        state = DEAD  # it has no owner, and a person does not want it tried again
    text = _answer_text(gate)
    move_task(
        tx,
        task,
        state,
        why="" if owner is not None else text,
        keep_owner=owner is not None,
        ready_at=tx.now if state == READY else None,
    )
    facts: dict[str, object] = {"task": task.id, "gate": gate.id, "why": text, "state": state}
    facts["is_resumed"] = owner is not None
    if gate.state == APPROVED and gate.about.get("retries"):
        renew_in(tx, task, by)  # the person allows more attempts
        facts["failures"] = 0
    if gate.state == WITHDRAWN and owner is not None:
        facts["why"] = ""  # the owner withdrew the question: there is nothing to learn from it
    tx.record("task.answered", *actor_of(by), facts)
