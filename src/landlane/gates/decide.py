"""Approve, reject or withdraw."""

from __future__ import annotations

from landlane.errors import NotAllowed, Stale
from landlane.gates.ask import kin
from landlane.gates.model import (
    ANSWERED,
    APPROVED,
    DEPLOY,
    REJECTED,
    WAITING,
    WITHDRAWN,
    Gate,
    bound_to,
)
from landlane.gates.pause_task import (
    RESUMABLE,
    end_holder,
    give_back,
    living_owner,
)
from landlane.gates.records import (
    NOUN,
    gate_from,
    gates_of,
    unknown_gate,
)
from landlane.roles.require_person import check_person
from landlane.sessions.leases import require_live
from landlane.sessions.notices import add_notice
from landlane.sessions.read import find_live_session
from landlane.sessions.worker_sessions import hands_of
from landlane.store import records
from landlane.tasks.model import ACTIVE, DEAD, READY, Task, check_reason
from landlane.tasks.model import WAITING as TASK_WAITING
from landlane.tasks.records import move_task, who
from landlane.tasks.retry import renew_in
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction


def answer(
    repo: Repository, person: Session, gate_id: str, *, approve: bool, why: str = "", head: str = ""
) -> Gate:
    """A person says yes or no: the owner goes on with the answer if it lives, else the task is offered again.

    `head` is the beginning of what the person saw: an answer is only for that.

    Raises:
        Malformed: there is no such gate, or a no without a reason.
        NotAllowed: whoever answers is no person, or the gate does not wait.
        Stale: the gate is about something else than the person saw.
    """
    check_person(person)
    if not approve:
        check_reason(why)
    check_answer(why)

    def work(tx: Transaction) -> Gate:
        require_live(tx, person)
        gate = _waiting(tx, gate_id, to_answer=True)
        if head and not bound_to(gate.about).startswith(head):
            raise Stale(
                f"{gate_id} is about {bound_to(gate.about)[:12] or 'no commit'}, not about {head[:12]}",
                code="HEAD_MOVED",
                hint=f"look at it again: landlane gate show {gate_id}",
            )
        return _end(tx, repo, gate, APPROVED if approve else REJECTED, person, why)

    return repo.change(work)


def check_answer(why: str) -> str:
    """What a person says with an answer, if anything.

    Raises:
        Malformed: it is too long, or cannot be stored.
    """
    return check_reason(why) if why.strip() else ""


def _waiting(tx: Transaction, gate_id: str, *, to_answer: bool = False) -> Gate:
    """A gate that waits, held still; its owner and its task, which others lock first, were locked before.

    What a person said of a deploy counts when it is made: until then the person may say something else.
    """
    document = records.find(tx, NOUN, gate_id)
    if document is None:
        raise unknown_gate(gate_id)
    for statement, name, key in (("session_lock", "session", "session"), ("task_lock", "task", "task")):
        if document[key]:
            tx.one(statement, **{name: document[key]})
    gate = gate_from(records.lock(tx, NOUN, gate_id) or document)
    may_change = to_answer and gate.kind == DEPLOY and gate.state in ANSWERED
    if gate.state != WAITING and not may_change:
        by = f" by {gate.answered_by}" if gate.answered_by else ""
        raise NotAllowed(
            f"{gate.id} was {gate.state}{by}: it does not wait for a person",
            code="NOT_WAITING",
            hint="`landlane gate list` shows what does",
            state=gate.state,
        )
    return gate


def withdraw(repo: Repository, session: Session, gate_id: str, why: str = "") -> Gate:
    """Whoever asked needs no answer any more, and goes on.

    Raises:
        Malformed: there is no such gate.
        NotAllowed: it does not wait, or somebody else asked.
    """
    check_answer(why)

    def work(tx: Transaction) -> Gate:
        me = require_live(tx, session)
        gate = _waiting(tx, gate_id)
        if gate.session not in kin(tx, me) and not me.is_person:
            raise NotAllowed(
                f"{gate_id} was asked by {gate.agent or 'nobody'}, not by {me.agent}",
                code="NOT_YOUR_GATE",
                hint="only who asked takes a question back",
                holder=gate.agent or None,
            )
        return _end(tx, repo, gate, WITHDRAWN, me, why)

    return repo.change(work)


def withdraw_in(tx: Transaction, task: Task) -> None:
    """The task goes on without an answer: its gates are withdrawn, and what they keep is free."""
    for gate in gates_of(tx, task.id, WAITING):
        end_holder(tx, gate)
        ended = replace(gate, state=WITHDRAWN, answer="the task went on without an answer", claims=())
        records.put(tx, NOUN, as_dict(ended), WITHDRAWN)
        tx.frees = True


def _end(tx: Transaction, repo: Repository, gate: Gate, state: str, by: Session, why: str) -> Gate:
    """Write the answer down, and let the task go on with it."""
    row = tx.one("task_lock", task=gate.task) if gate.task else None
    task = Task.from_row(row) if row is not None else None
    is_current = task is not None and task.state == TASK_WAITING and task.attempt == gate.attempt
    others = [one for one in gates_of(tx, gate.task, WAITING) if one.id != gate.id] if gate.task else []
    owner = living_owner(tx, repo, task) if task is not None and is_current and not others else None
    now = repo.store.wall_of(tx.now)
    ended = replace(
        gate,
        state=state,
        answered_at=now,
        answered_by=by.agent,
        answer=why.strip(),
        is_resumed=owner is not None,
    )
    text = answer_text(ended)
    records.put(tx, NOUN, as_dict(ended), state, by)
    if owner is not None:
        give_back(tx, repo, ended, owner)
    else:
        end_holder(tx, ended)
    if task is not None and is_current and not others:
        _go_on(tx, task, ended, owner, by, text)
    if by.id != gate.session and (owner is not None or _is_there(tx, gate.session)):
        told = owner.id if owner is not None else gate.session
        for one in (told, *(hands.id for hands in hands_of(tx, told) if hands.id != by.id)):
            add_notice(tx, one, text)
    tx.frees = True
    return ended


def answer_text(gate: Gate) -> str:
    """The answer as whoever asked, or comes next, reads it."""
    said = f": {gate.answer}" if gate.answer else ""
    return f"{gate.id} ({gate.kind}) was {gate.state} by {gate.answered_by}{said}. It was asked: {gate.why}"


def _is_there(tx: Transaction, session: str) -> bool:
    return bool(session) and find_live_session(tx, session) is not None


def _go_on(tx: Transaction, task: Task, gate: Gate, owner: Session | None, by: Session, text: str) -> None:
    then = READY
    if owner is not None:
        then = gate.before if gate.before in RESUMABLE else ACTIVE
    elif gate.state == REJECTED and not task.session:
        then = DEAD  # nobody had it in hand, and a person does not want it tried again
    why = "" if owner is not None else text
    more: dict[str, object] = {}
    move_task(
        tx, task, then, why=why, keep_owner=owner is not None, ready_at=tx.now if then == READY else None
    )
    if gate.state == APPROVED and gate.about.get("retries"):
        renew_in(tx, task, by)  # a person wants it tried again: with a budget
        more["failures"] = 0
    if gate.state == WITHDRAWN and owner is not None:
        text = ""  # who took the question back has learned nothing
    facts = {"task": task.id, "gate": gate.id, "why": text, "state": then, "is_resumed": owner is not None}
    tx.record("task.answered", *who(by), facts | more)
