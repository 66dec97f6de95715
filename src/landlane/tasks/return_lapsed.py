"""Return the tasks of a session that ended or whose lease expired."""

from __future__ import annotations

from landlane.sessions.model import Session
from landlane.store import records
from landlane.tasks import retry_rules
from landlane.tasks.lineage import lock_lineage, put_lineage
from landlane.tasks.model import DEAD, IN_PROGRESS, READY
from landlane.tasks.records import lock_task, move_task, tasks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.store.interface import Transaction


def waits_for_person(tx: Transaction, session_id: str) -> bool:
    """Whether a session is silent because its only task waits at a gate."""
    waits = any(
        gate["session"] == session_id and gate["task"] for gate in records.find_all(tx, "gate", ("waiting",))
    )
    return waits and not any(task.state in IN_PROGRESS for task in tasks_of(tx, session_id))


def return_tasks(tx: Transaction, session: Session, *, is_own_will: bool) -> None:
    """Return the session's tasks to the queue; a task that too many owners lost or left becomes dead."""
    rows = tx.all("tasks_of_session", session=session.id)
    if not rows:
        return
    for row in rows:
        task = lock_task(tx, row["id"])  # locked: another session may be dropping it
        if task.session != session.id or task.state not in IN_PROGRESS:
            continue
        lapses = task.lapses + (not is_own_will)
        lineage = lock_lineage(tx, task.lineage)
        why = f"{session.agent} {'left' if is_own_will else 'vanished'} during attempt {task.attempt}"
        if is_own_will:
            lineage = retry_rules.after_owner_left(lineage, task.id)
            is_over = retry_rules.is_left_for_good(lineage, task.id)
            why += f"; {lineage.uncharged[task.id]} owners in a row went away from it" if is_over else ""
        else:
            lineage = retry_rules.after_lost_owner(lineage, task.id)
            is_over = retry_rules.is_lost_for_good(lineage, lapses)
        put_lineage(tx, lineage, "booked", session)
        new_state = DEAD if is_over else READY
        move_task(tx, task, new_state, why=why, lapses=lapses)
        facts = {"task": task.id, "why": why, "attempt": task.attempt, "state": new_state, "lapses": lapses}
        tx.record("task.returned", session.agent, session.id, facts)
