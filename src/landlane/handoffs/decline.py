"""Decline a handoff."""

from __future__ import annotations

from landlane.handoffs.accept import check_receiver, not_handed
from landlane.handoffs.model import Handoff
from landlane.handoffs.transfer import (
    NOUN,
    drop_holder,
    open_handoff,
)
from landlane.sessions.leases import require_live
from landlane.sessions.notices import add_notice
from landlane.sessions.read import find_session
from landlane.store import records
from landlane.tasks.model import LONGEST_LINE, check_reason
from landlane.tasks.records import get_in, who
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction

    Step = Callable[[str], None]


def decline_handoff(repo: Repository, session: Session, task_id: str, why: str) -> Handoff:
    """Whom a handoff is for does not want it: it is anybody's at once, and its claims are free.

    Raises:
        Malformed: there is no reason, no such task, or no handoff that waits.
        Held: it is for somebody else.
    """
    check_reason(why)

    def work(tx: Transaction) -> Handoff:
        me = require_live(tx, session)
        task = get_in(tx, task_id)
        handoff = open_handoff(tx, task_id)
        if handoff is None:
            raise not_handed(task)
        check_receiver(tx, repo, me, task, handoff)
        now = repo.store.wall_of(tx.now)
        drop_holder(tx, handoff)
        told = f"{me.agent} declined {handoff.id}: {why}"[:LONGEST_LINE]
        declined = replace(
            handoff,
            until=min(handoff.until, now),
            declined={**handoff.declined, me.agent: now + repo.settings.handoffs.wait_ms},
            holder="",
            why=told,
        )
        records.put(tx, NOUN, as_dict(declined), "declined", me, task=task_id)
        facts = {"task": task_id, "why": told, "attempt": task.attempt, "state": task.state, "handed": True}
        tx.record("task.returned", *who(me), facts)
        tx.run("task_set_why", task=task_id, why=told, next_action=task.next_action)
        if _lives(tx, handoff.session):
            add_notice(tx, handoff.session, f"{told}. {task_id} is anybody's now")
        return declined

    return repo.change(work)


def _lives(tx: Snapshot, session_id: str) -> bool:
    session = find_session(tx, session_id)
    return session is not None and session.is_alive(tx.now)
