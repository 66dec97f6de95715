"""Check that a session owns a task."""

from __future__ import annotations

from landlane.errors import NotAllowed, Stale
from landlane.sessions.read import find_ancestors
from landlane.tasks.model import (
    ACTIVE,
    AT_WORK,
    BLOCKED,
    DEAD,
    FAILED,
    WAITING,
)
from landlane.tasks.rows import (
    get_in,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


def owned(tx: Transaction, session: Session, task_id: str, *, by_hands: bool = False) -> Task:
    """A task that this session is at work on, or one whose subagent it is.

    `by_hands`: the session of the worker may do it, too (see sessions/worker_sessions.py), except for what
    ends an attempt.

    Raises:
        Stale: it is somebody else's by now, or nobody's.
    """
    task = get_in(tx, task_id)
    is_own = task.session == session.id
    are_hands = False
    if task.session and not is_own and task.session in find_ancestors(tx, session.id):
        from landlane.sessions.worker_sessions import keeper_of  # noqa: PLC0415 - few act for another

        are_hands = keeper_of(tx, session.id) == task.session
        is_own = by_hands or not are_hands
    if is_own and task.state in AT_WORK:
        return task
    held = f"{task.owner} is at work on it" if task.owner and task.state in AT_WORK else f"it is {task.state}"
    if are_hands and task.state in AT_WORK:
        raise Stale(
            f"{task_id} is not {session.agent}'s to end: {task.owner} holds it, and does that",
            code="TASK_NOT_YOURS",
            hint="end with WorkComplete or WorkFailed; what you return is judged and handed in then",
            holder=task.owner or None,
            state=task.state,
        )
    raise Stale(
        f"{task_id} is not (or no longer) {session.agent}'s: {held}",
        code="TASK_NOT_YOURS",
        hint="`landlane next` gives you a task of your own; what you did stays in your branch",
        holder=task.owner or None,
        state=task.state,
    )


def not_for_that(task: Task, words: str) -> NotAllowed:
    """A task is in no state for what somebody wants."""
    hints = {
        BLOCKED: f"landlane task unblock {task.id}",
        ACTIVE: f"{task.owner} is at work on it",
        FAILED: f"landlane task retry {task.id}",
        DEAD: f"landlane task retry {task.id}",
        WAITING: "`landlane gate list` shows the question, and a person answers it",
    }
    return NotAllowed(
        f"{task.id} is {task.state}: it {words}",
        code="TASK_WRONG_STATE",
        hint=hints.get(task.state, f"`landlane task show {task.id}` tells more"),
        state=task.state,
    )
