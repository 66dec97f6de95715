"""Accept or decline a handoff, each in one transaction.

With the sending the task is nobody's but the handoff's: it lies in the queue for whom it is for, its claims
and its workspace are kept by a session of the handoff whose lease is the time it waits. So the sender may die
right after, and the receiver may never come: when the lease is over, anybody may go on. Nothing depends on a
message that must arrive; whoever is named finds the handoff by looking, as often as it is started anew.
"""

from __future__ import annotations

from landlane.claims.take import living
from landlane.clock import rfc3339
from landlane.errors import Held, Malformed, NotAllowed, Stale
from landlane.handoffs.model import Handoff, is_addressed, is_same_digest
from landlane.handoffs.records import newest_in
from landlane.handoffs.send import send_handoff
from landlane.handoffs.transfer import (
    NOUN,
    accept_in,
    drop_holder,
    is_persons,
    open_handoff,
)
from landlane.roles.model import forbidden
from landlane.sessions.notices import add_notice
from landlane.store import records
from landlane.tasks.model import AT_WORK, LONGEST_LINE, READY, check_reason
from landlane.tasks.rows import get_in, who, whole
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.claims.model import Claim, Refused
    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading
    from landlane.tasks.model import Task

    Step = Callable[[str], None]


__all__ = ["accept_handoff", "decline_handoff", "open_handoff", "send_handoff"]


@value
class Accepted:
    """A handed task that is the caller's now, with its claims and what was handed over with it."""

    task: Task
    handoff: Handoff
    claims: tuple[Claim, ...]


# ------------------------------------------------------------------------------------------ looking


# ---------------------------------------------------------------------------------------- accepting


def accept_handoff(
    context: Context, session: Session, task_id: str, digest: str = "", on_step: Step = lambda _: None
) -> Accepted | Refused:
    """Accept a handed task against the hash of what was handed over: task, claims and workspace at once.

    Accepting again what is one's own already changes nothing. Without a hash, the content as it stands is
    accepted: the caller has just been given it. A refusal says who holds what the task will change.

    Raises:
        Malformed: there is no such task, or nothing was handed over with it.
        Held: it is for somebody else, for now.
        Stale: the hash is another, or somebody has accepted it.
        NotAllowed: the role of the session forbids it.
    """

    def work(tx: Change) -> Accepted | Refused:
        me = living(tx, session)
        on_step("begun")
        task = get_in(tx, task_id)
        handoff = open_handoff(tx, task_id)
        if handoff is None:
            return _again(tx, me, task, digest)
        _check_hash(handoff, digest)
        _check_receiver(tx, context, me, task, handoff)
        if me.role and task.role and me.role != task.role:
            raise forbidden(
                me.agent, me.role, f"a task for the role {task.role} is not for the role {me.role}"
            )
        outcome = accept_in(tx, context, me, task, handoff, on_step)
        if not isinstance(outcome, tuple):
            return outcome
        accepted = newest_in(tx, task_id)
        assert accepted is not None
        return Accepted(task=outcome[0], handoff=accepted, claims=outcome[1])

    accepted = context.change(work)
    on_step("accepted")
    return accepted


def _again(tx: Change, me: Session, task: Task, digest: str) -> Accepted:
    """What this session has accepted already; so a call whose answer was lost can be made again."""
    newest = newest_in(tx, task.id)
    if newest is None:
        raise _not_handed(task)
    if newest.accepted_session == me.id and task.session == me.id and task.state in AT_WORK:
        _check_hash(newest, digest)
        from landlane.claims.read import live_claims  # noqa: PLC0415 - rare

        claims = live_claims(tx.all("claims_of_task", session=me.id, task=task.id), tx.now)
        return Accepted(task=whole(tx, task), handoff=newest, claims=tuple(claims))
    if newest.accepted_by:
        raise Stale(
            f"{newest.accepted_by} has accepted {newest.id} already",
            code="HANDOFF_ACCEPTED",
            hint="`landlane next` gives you a task of your own",
            holder=newest.accepted_by,
            task=task.id,
        )
    raise _not_handed(task)


def _not_handed(task: Task) -> Malformed:
    return Malformed(
        f"{task.id} waits under no handoff: it is {task.state}",
        code="NO_HANDOFF",
        hint="`landlane handoff list` shows those that wait",
        task=task.id,
        state=task.state,
    )


def _check_hash(handoff: Handoff, shown: str) -> None:
    if shown and not is_same_digest(handoff, shown):
        raise Stale(
            f"{handoff.id} has the hash {handoff.digest[:12]}, not {shown[:12]}: you have read another",
            code="HANDOFF_CHANGED",
            hint=f"read it again: landlane handoff show {handoff.task}",
            hash=handoff.digest,
            task=handoff.task,
        )


def _check_receiver(tx: Change, context: Context, me: Session, task: Task, handoff: Handoff) -> None:
    if task.state != READY:
        raise NotAllowed(
            f"{task.id} is {task.state}: it cannot be accepted now",
            code="TASK_WRONG_STATE",
            hint=f"`landlane task show {task.id}` tells why",
            state=task.state,
        )
    now = context.store.wall_of(tx.now)
    is_for = is_addressed(handoff, me.agent, me.role) or now >= handoff.until
    if is_for or is_persons(me):  # whoever declined may think again
        return
    raise Held(
        f"{handoff.id} hands {task.id} to {handoff.to}, not to {me.agent}",
        code="HANDOFF_NOT_YOURS",
        hint=f"`landlane next` has other work; if {handoff.to} does not come, it is anybody's then",
        holder=handoff.to,
        until=rfc3339(handoff.until),
        task=task.id,
    )


# ---------------------------------------------------------------------------------------- declining


def decline_handoff(context: Context, session: Session, task_id: str, why: str) -> Handoff:
    """Whom a handoff is for does not want it: it is anybody's at once, and its claims are free.

    Raises:
        Malformed: there is no reason, no such task, or no handoff that waits.
        Held: it is for somebody else.
    """
    check_reason(why)

    def work(tx: Change) -> Handoff:
        me = living(tx, session)
        task = get_in(tx, task_id)
        handoff = open_handoff(tx, task_id)
        if handoff is None:
            raise _not_handed(task)
        _check_receiver(tx, context, me, task, handoff)
        now = context.store.wall_of(tx.now)
        drop_holder(tx, handoff)
        told = f"{me.agent} declined {handoff.id}: {why}"[:LONGEST_LINE]
        declined = replace(
            handoff,
            until=min(handoff.until, now),
            declined={**handoff.declined, me.agent: now + context.settings.handoffs_wait_ms},
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

    return context.change(work)


def _lives(tx: Reading, session_id: str) -> bool:
    row = tx.one("session_get", session=session_id)
    return row is not None and row[12] is None and row[9] + row[7] > tx.now
