"""Work that was proved and cannot be submitted: its attempt has failed, like one whose landing bounced."""

from __future__ import annotations

from landlane.domain.landings import OPEN
from landlane.domain.tasks import LANDING
from landlane.errors import Stale
from landlane.operations import records
from landlane.operations.landings import NOUN
from landlane.operations.retries import end_attempt_in
from landlane.operations.task_rows import get_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.domain.agents import Session
    from landlane.domain.retries import AttemptEnd, Decision
    from landlane.operations.context import Context
    from landlane.ports.store import Change


def send_back(context: Context, session: Session, end: AttemptEnd) -> Decision:
    """Put a task back that waits to be landed and stands in no queue; the judge of retries counts it.

    Raises:
        Stale: somebody submitted it after all, or it is in another attempt.
    """

    def work(tx: Change) -> Decision:
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
        return end_attempt_in(tx, context, session, task, end)

    return context.change(work)
