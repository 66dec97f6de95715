"""Accept or decline a handoff, each in one transaction.

Sending a handoff frees the task from its owner: the task waits in the queue for the receiver, and a session
of the handoff holds its claims and workspace. The lease of that session is the time the handoff waits. So the
sender may end right afterwards. If the receiver never starts, any agent may accept once the lease is over.
Nothing depends on a message that must arrive: a session looks for handoffs to its name when it starts.
"""

from __future__ import annotations

from landlane.claims.take import claims_of_task
from landlane.clock import rfc3339
from landlane.errors import Held, Malformed, NotAllowed, Stale
from landlane.handoffs.model import SENT, is_addressed, is_same_digest
from landlane.handoffs.transfer import NOUN, accept_in, newest_handoff, open_handoff, release_holder
from landlane.roles.model import forbidden
from landlane.sessions.leases import find_session, require_live
from landlane.sessions.notices import add_notice
from landlane.store import records
from landlane.tasks.model import IN_PROGRESS, LONGEST_LINE, READY, check_reason, is_for_person
from landlane.tasks.records import actor_of, lock_task, with_dependencies
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim, Refused
    from landlane.handoffs.model import Handoff, OnStep
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


@value
class Accepted:
    """A task that the caller owns now, with its claims and its handoff."""

    task: Task
    handoff: Handoff
    claims: tuple[Claim, ...]


def accept_handoff(
    repo: Repository, session: Session, task_id: str, digest: str = "", on_step: OnStep = lambda _: None
) -> Accepted | Refused:
    """Accept the handoff of a task: the task, its claims and its workspace move to the session together.

    The hash shows which content the caller has read; without one, the present content is accepted. Accepting
    again changes nothing. The result is `Refused` if another session holds paths that the task declares.

    Raises:
        Malformed: there is no such task, or it was not handed off.
        Held: it is addressed to another agent, for now.
        Stale: the hash differs, or another session has accepted it.
        NotAllowed: the role of the session forbids it.
    """

    def work(tx: Transaction) -> Accepted | Refused:
        me = require_live(tx, session)
        on_step("begun")
        task = lock_task(tx, task_id)
        handoff = open_handoff(tx, task_id)
        if handoff is None:
            return _find_accepted(tx, me, task, digest)
        _check_hash(handoff, digest)
        _check_receiver(tx, repo, me, task, handoff)
        if me.role and task.role and me.role != task.role:
            raise forbidden(
                me.agent, me.role, f"a task for the role {task.role} is not for the role {me.role}"
            )
        outcome = accept_in(tx, repo, me, task, handoff, on_step)
        if not isinstance(outcome, tuple):
            return outcome
        accepted = newest_handoff(tx, task_id)
        assert accepted is not None
        return Accepted(task=outcome[0], handoff=accepted, claims=outcome[1])

    accepted = repo.change(work)
    on_step("accepted")
    return accepted


def decline_handoff(repo: Repository, session: Session, task_id: str, why: str) -> Handoff:
    """Decline the handoff of a task: its claims are released, and any agent may take the task.

    Raises:
        Malformed: there is no reason, no such task, or no handoff that waits.
        Held: it is addressed to another agent.
    """
    check_reason(why)

    def work(tx: Transaction) -> Handoff:
        me = require_live(tx, session)
        task = lock_task(tx, task_id)
        handoff = open_handoff(tx, task_id)
        if handoff is None:
            raise _not_handed_error(task)
        _check_receiver(tx, repo, me, task, handoff)
        now = repo.store.wall_of(tx.now)
        release_holder(tx, handoff)
        text = f"{me.agent} declined {handoff.id}: {why}"[:LONGEST_LINE]
        declined = handoff.become(
            SENT,
            until=min(handoff.until, now),
            declined={**handoff.declined, me.agent: now + repo.settings.handoffs.wait_ms},
            holder="",
            why=text,
        )
        records.put(tx, NOUN, as_dict(declined), "declined", me, task=task_id)
        facts = {"task": task_id, "why": text, "attempt": task.attempt, "state": task.state, "handed": True}
        tx.record("task.returned", *actor_of(me), facts)
        tx.run("task_set_why", task=task_id, why=text, next_action=task.next_action)
        sender = find_session(tx, handoff.session)
        if sender is not None and sender.is_alive(tx.now):
            add_notice(tx, sender.id, f"{text}. {task_id} is open to anyone now")
        return declined

    return repo.change(work)


def _find_accepted(tx: Transaction, me: Session, task: Task, digest: str) -> Accepted:
    """Return what this session has accepted before, so that a call whose answer was lost can be repeated."""
    newest = newest_handoff(tx, task.id)
    if newest is None:
        raise _not_handed_error(task)
    if newest.accepted_session == me.id and task.session == me.id and task.state in IN_PROGRESS:
        _check_hash(newest, digest)
        claims = claims_of_task(tx, me.id, task.id)
        return Accepted(task=with_dependencies(tx, task), handoff=newest, claims=tuple(claims))
    if newest.accepted_by:
        raise Stale(
            f"{newest.accepted_by} has accepted {newest.id} already",
            code="HANDOFF_ACCEPTED",
            hint="take a task of your own: landlane next",
            holder=newest.accepted_by,
            task=task.id,
        )
    raise _not_handed_error(task)


def _not_handed_error(task: Task) -> Malformed:
    return Malformed(
        f"{task.id} {task.title} is {task.state} and was not handed over",
        code="NO_HANDOFF",
        hint="see what waits: landlane handoff list",
        task=task.id,
        state=task.state,
    )


def _check_hash(handoff: Handoff, digest: str) -> None:
    if digest and not is_same_digest(handoff, digest):
        raise Stale(
            f"{handoff.id} has the hash {handoff.digest[:12]}, not {digest[:12]}: you have read another",
            code="HANDOFF_CHANGED",
            hint=f"read it again: landlane handoff show {handoff.task}",
            hash=handoff.digest,
            task=handoff.task,
        )


def _check_receiver(tx: Transaction, repo: Repository, me: Session, task: Task, handoff: Handoff) -> None:
    """Refuse a session that the handoff is not addressed to; one that declined it may still accept."""
    if task.state != READY:
        raise NotAllowed(
            f"{task.id} is {task.state}: it cannot be accepted now",
            code="TASK_WRONG_STATE",
            hint=f"see why: landlane task show {task.id}",
            state=task.state,
        )
    now = repo.store.wall_of(tx.now)
    is_open = now >= handoff.until and not is_for_person(handoff.to)
    if me.is_person or is_open or is_addressed(handoff, me.agent, me.role):
        return
    raise Held(
        f"{handoff.id} hands {task.id} to {handoff.to}, not to {me.agent}",
        code="HANDOFF_NOT_YOURS",
        hint="take other work: landlane next"
        if is_for_person(handoff.to)
        else f"take other work: landlane next; it is open to anyone if {handoff.to} does not accept it",
        holder=handoff.to,
        until=rfc3339(handoff.until),
        task=task.id,
    )
