"""Letting go of a task in hand without failing it, for another agent."""

from __future__ import annotations

from landlane.domain.retries import HANDED, AttemptEnd
from landlane.operations.claims import living
from landlane.operations.retries import end_attempt_in
from landlane.operations.tasks import check_reason, owned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.domain.agents import Session
    from landlane.domain.tasks import Task
    from landlane.operations.context import Context
    from landlane.ports.store import Change


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
        end = AttemptEnd(task=task_id, attempt=task.attempt, code=HANDED, feedback=why)
        return end_attempt_in(tx, context, session, task, end).task

    return context.change(work)
