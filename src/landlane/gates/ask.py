"""Gates as the store knows them: asked, answered by a person, or withdrawn; the task rests meanwhile.

A task at a gate is `waiting_for_person`. The answer gives it back to its owner if that still lives; otherwise
it goes into the queue, and whoever takes it next reads the answer first. Each of these is one transaction: a
task is always somebody's, the gate's or the queue's, and never two of these. What happens to its claims
meanwhile is told in `pause_task.py`.
"""

from __future__ import annotations

from landlane.claims.take import ancestors_of, living
from landlane.errors import NotAllowed, Stale, WaitsForPerson
from landlane.gates.model import (
    ANSWERED,
    APPROVED,
    DEPLOY,
    LONGEST_WHY,
    REJECTED,
    WAITING,
    WITHDRAWN,
    Gate,
    bound_to,
    check_question,
    is_same_question,
    risk_of,
)
from landlane.gates.pause_task import (
    RESUMABLE,
    end_holder,
    give_back,
    living_owner,
    rest,
    why_at_rest,
)
from landlane.gates.records import (
    NOUN,
    find_approval,
    gate_from,
    gates_in,
    gates_of,
    get_gate,
    list_gates,
    unknown_gate,
)
from landlane.roles.model import forbidden
from landlane.sessions.model import PERSON
from landlane.sessions.notices import add_notice
from landlane.sessions.worker_sessions import hands_of
from landlane.store import records
from landlane.tasks.change import check_reason, owned
from landlane.tasks.model import ACTIVE, DEAD, READY, Task
from landlane.tasks.model import WAITING as TASK_WAITING
from landlane.tasks.rows import get_in, move_task, task_from, who
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Change


__all__ = [
    "answer",
    "ask",
    "ask_freely",
    "check_person",
    "find_approval",
    "gates_in",
    "gates_of",
    "get_gate",
    "list_gates",
    "open_gate_in",
    "withdraw",
    "withdraw_in",
]


# ------------------------------------------------------------------------------------------ asking


def ask(
    context: Context,
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

    def work(tx: Change) -> Gate:
        me = living(tx, session)
        for gate in reversed(gates_of(tx, task_id)):
            if gate.state != WITHDRAWN and is_same_question(gate, kind, why, asked):
                _check_asker(tx, me, gate)
                return gate
        _check_no_other(tx, me, task_id)
        task = owned(tx, me, task_id, by_hands=True)
        return open_gate_in(
            tx, context, me, task=task, kind=kind, why=why, about=asked, risk=risk, evidence=evidence
        )

    return context.change(work)


def _check_asker(tx: Change, me: Session, gate: Gate) -> None:
    """Whoever asks again must be the one who may ask: it waits, or has the task in hand."""
    if gate.state != WAITING or gate.session not in _kin(tx, me):
        owned(tx, me, gate.task, by_hands=True)


def _kin(tx: Change, me: Session) -> set[str]:
    """A session, and those for whom it may ask: the gate is theirs, whoever of them asked."""
    return {me.id, *ancestors_of(tx, me.id)}


def _check_no_other(tx: Change, me: Session, task_id: str) -> None:
    """Refuse a second question while the first has no answer: either could let the task go on."""
    for gate in gates_of(tx, task_id, WAITING):
        if gate.session in _kin(tx, me):
            raise WaitsForPerson(
                f"{task_id} waits for the answer to {gate.id} already: {gate.why}",
                code="GATE_OPEN",
                hint=f"wait for it, or `landlane gate withdraw {gate.id}` and ask anew",
                gate=gate.id,
            )


def ask_freely(
    context: Context,
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

    def work(tx: Change) -> Gate:
        me = living(tx, session)
        for gate in reversed(gates_in(tx, (WAITING, *ANSWERED))):
            if gate.kind == kind and dict(gate.about) == asked and (not gate.task or gate.state != WAITING):
                return gate
        return open_gate_in(
            tx, context, me, task="", kind=kind, why=why, about=asked, risk=risk, evidence=evidence
        )

    return context.change(work, areas={f"//gate:{kind}": True})


def open_gate_in(
    tx: Change,
    context: Context,
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
        asked_at=context.store.wall_of(tx.now),
        risk=risk_of(kind) if risk is None else risk,
        evidence=dict(evidence or {}),
    )
    if isinstance(found, Task):
        gate = rest(tx, context, found, gate)
    records.put(tx, NOUN, as_dict(gate), "asked", session)
    if isinstance(found, Task):
        facts = {"task": found.id, "gate": gate.id, "why": why_at_rest(gate), "before": gate.before}
        tx.record("task.asked", *who(session), facts)
    return gate


# ------------------------------------------------------------------------------------------ answering


def answer(
    context: Context, person: Session, gate_id: str, *, approve: bool, why: str = "", head: str = ""
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

    def work(tx: Change) -> Gate:
        living(tx, person)
        gate = _waiting(tx, gate_id, to_answer=True)
        if head and not bound_to(gate.about).startswith(head):
            raise Stale(
                f"{gate_id} is about {bound_to(gate.about)[:12] or 'no commit'}, not about {head[:12]}",
                code="HEAD_MOVED",
                hint=f"look at it again: landlane gate show {gate_id}",
            )
        return _end(tx, context, gate, APPROVED if approve else REJECTED, person, why)

    return context.change(work)


def check_person(session: Session) -> None:
    """Refuse whoever is no person, or bound by a role.

    Raises:
        NotAllowed: an agent, a subagent or a role asks.
    """
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides what waits for a person")
    if session.kind != PERSON:
        raise NotAllowed(
            f"{session.agent} is an agent: only a person answers a gate",
            code="NOT_A_PERSON",
            hint="a person runs it in a terminal of their own, that no agent was started from",
        )


def check_answer(why: str) -> str:
    """What a person says with an answer, if anything.

    Raises:
        Malformed: it is too long, or cannot be stored.
    """
    return check_reason(why) if why.strip() else ""


def _waiting(tx: Change, gate_id: str, *, to_answer: bool = False) -> Gate:
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


def withdraw(context: Context, session: Session, gate_id: str, why: str = "") -> Gate:
    """Whoever asked needs no answer any more, and goes on.

    Raises:
        Malformed: there is no such gate.
        NotAllowed: it does not wait, or somebody else asked.
    """
    check_answer(why)

    def work(tx: Change) -> Gate:
        me = living(tx, session)
        gate = _waiting(tx, gate_id)
        if gate.session not in _kin(tx, me) and me.kind != PERSON:
            raise NotAllowed(
                f"{gate_id} was asked by {gate.agent or 'nobody'}, not by {me.agent}",
                code="NOT_YOUR_GATE",
                hint="only who asked takes a question back",
                holder=gate.agent or None,
            )
        return _end(tx, context, gate, WITHDRAWN, me, why)

    return context.change(work)


def withdraw_in(tx: Change, task: Task) -> None:
    """The task goes on without an answer: its gates are withdrawn, and what they keep is free."""
    for gate in gates_of(tx, task.id, WAITING):
        end_holder(tx, gate)
        ended = replace(gate, state=WITHDRAWN, answer="the task went on without an answer", claims=())
        records.put(tx, NOUN, as_dict(ended), WITHDRAWN)
        tx.frees = True


def _end(tx: Change, context: Context, gate: Gate, state: str, by: Session, why: str) -> Gate:
    """Write the answer down, and let the task go on with it."""
    row = tx.one("task_lock", task=gate.task) if gate.task else None
    task = task_from(row) if row is not None else None
    is_current = task is not None and task.state == TASK_WAITING and task.attempt == gate.attempt
    others = [one for one in gates_of(tx, gate.task, WAITING) if one.id != gate.id] if gate.task else []
    owner = living_owner(tx, context, task) if task is not None and is_current and not others else None
    now = context.store.wall_of(tx.now)
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
        give_back(tx, context, ended, owner)
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


def _is_there(tx: Change, session: str) -> bool:
    row = tx.one("session_get", session=session) if session else None
    return row is not None and row[12] is None


def _go_on(tx: Change, task: Task, gate: Gate, owner: Session | None, by: Session, text: str) -> None:
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
        from landlane.tasks.retry import renew_in  # noqa: PLC0415 - a circle otherwise

        renew_in(tx, task, by)  # a person wants it tried again: with a budget
        more["failures"] = 0
    if gate.state == WITHDRAWN and owner is not None:
        text = ""  # who took the question back has learned nothing
    facts = {"task": task.id, "gate": gate.id, "why": text, "state": then, "is_resumed": owner is not None}
    tx.record("task.answered", *who(by), facts | more)
