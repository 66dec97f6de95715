"""Hand a task back to the queue without failing it, for another agent."""

from __future__ import annotations

from landlane.sessions.leases import require_live
from landlane.tasks.model import check_reason
from landlane.tasks.owner import owned
from landlane.tasks.retry import end_attempt_in
from landlane.tasks.retry_rules import HANDED, AttemptEnd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


def hand_back(repo: Repository, session: Session, task_id: str, why: str) -> Task:
    """The owner lets another go on: back into the queue with what was found out, and no attempt is charged.

    Raises:
        Stale: the task is not this session's any more.
        Malformed: there is no reason, or one that cannot be stored.
    """
    check_reason(why)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = owned(tx, session, task_id)
        end = AttemptEnd(task=task_id, attempt=task.attempt, code=HANDED, feedback=why)
        return end_attempt_in(tx, repo, session, task, end).task

    return repo.change(work)
