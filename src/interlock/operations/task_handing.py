"""Letting go of a task in hand without failing it: for another agent, or for a person to answer first."""

from __future__ import annotations

from interlock.domain.tasks import BLOCKED, READY
from interlock.operations.claims import living
from interlock.operations.task_rows import get_in, move_task, who, whole
from interlock.operations.tasks import check_reason, owned, release_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.domain.agents import Session
    from interlock.domain.tasks import Task
    from interlock.operations.context import Context
    from interlock.ports.store import Change


def hand_back(context: Context, session: Session, task_id: str, why: str) -> Task:
    """The owner lets another go on: back into the queue with what was found out, and no attempt is charged.

    Raises:
        Stale: the task is not this session's any more.
        Malformed: there is no reason, or one that cannot be stored.
    """
    check_reason(why)

    def work(tx: Change) -> Task:
        living(tx, session)
        task = owned(tx, session, task_id)
        move_task(tx, task, READY, why=why, ready_at=tx.now)
        release_claims(tx, task, "")
        facts = {"task": task_id, "why": why, "attempt": task.attempt, "state": READY, "handed": True}
        tx.record("task.returned", *who(session), facts)
        tx.frees = True
        return whole(tx, get_in(tx, task_id))

    return context.change(work)


def rest_for_person(context: Context, session: Session, task_id: str, question: str) -> Task:
    """The owner cannot go on without a person: the task rests until somebody unblocks it.

    Raises:
        Stale: the task is not this session's any more.
        Malformed: there is no question, or one that cannot be stored.
    """
    why = f"asks a person: {check_reason(question)}"
    check_reason(why)

    def work(tx: Change) -> Task:
        living(tx, session)
        task = owned(tx, session, task_id)
        move_task(tx, task, BLOCKED, why=why)
        release_claims(tx, task, "")
        tx.record("task.blocked", *who(session), {"task": task_id, "why": why, "before": task.state})
        tx.frees = True
        return whole(tx, get_in(tx, task_id))

    return context.change(work)
