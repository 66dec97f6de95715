"""Work that was proved and cannot be submitted: its attempt has failed, like one whose landing bounced."""

from __future__ import annotations

from interlock.domain.landings import OPEN
from interlock.domain.tasks import LANDING
from interlock.errors import Stale
from interlock.operations import records
from interlock.operations.landings import NOUN
from interlock.operations.retries import end_attempt_in
from interlock.operations.task_rows import get_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.domain.agents import Session
    from interlock.domain.retries import AttemptEnd, Decision
    from interlock.operations.context import Context
    from interlock.ports.store import Change


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
                hint=f"`interlock task show {task.id}` tells how it stands",
                state=task.state,
            )
        return end_attempt_in(tx, context, session, task, end)

    return context.change(work)
