"""Work that was proved and cannot be submitted: its attempt has failed, like one whose landing bounced."""

from __future__ import annotations

from landlane.errors import Stale
from landlane.landing.model import OPEN
from landlane.landing.records import NOUN
from landlane.store import records
from landlane.tasks.model import LANDING
from landlane.tasks.records import get_in
from landlane.tasks.retry import end_attempt_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.retry_rules import AttemptEnd, Decision


def send_back(repo: Repository, session: Session, end: AttemptEnd) -> Decision:
    """Put a task back that waits to be landed and stands in no queue; the judge of retries counts it.

    Raises:
        Stale: somebody submitted it after all, or it is in another attempt.
    """

    def work(tx: Transaction) -> Decision:
        task = get_in(tx, end.task)
        is_waiting = task.state == LANDING and task.attempt == end.attempt
        queued = is_waiting and any(one["task"] == task.id for one in records.all_of(tx, NOUN, OPEN))
        if not is_waiting or queued:
            raise Stale(
                f"{task.id} goes on without {session.agent}: it is {task.state}",
                code="TASK_NOT_YOURS",
                hint=f"`landlane task show {task.id}` tells how it stands",
                state=task.state,
            )
        return end_attempt_in(tx, repo, session, task, end)

    return repo.change(work)
