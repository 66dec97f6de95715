"""Accept or decline a handoff, each in one transaction.

With the sending the task is nobody's but the handoff's: it lies in the queue for whom it is for, its claims
and its workspace are kept by a session of the handoff whose lease is the time it waits. So the sender may die
right after, and the receiver may never come: when the lease is over, anybody may go on. Nothing depends on a
message that must arrive; whoever is named finds the handoff by looking, as often as it is started anew.
"""

from __future__ import annotations

from landlane.claims.read import claims_of_task
from landlane.clock import rfc3339
from landlane.errors import Held, Malformed, NotAllowed, Stale
from landlane.handoffs.model import Handoff, is_addressed, is_same_digest
from landlane.handoffs.records import newest_in
from landlane.handoffs.send import send_handoff
from landlane.handoffs.transfer import (
    accept_in,
    open_handoff,
)
from landlane.roles.model import forbidden
from landlane.sessions.leases import require_live
from landlane.tasks.model import AT_WORK, READY
from landlane.tasks.records import get_in, whole
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.claims.model import Claim, Refused
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task

    Step = Callable[[str], None]


__all__ = ["accept_handoff", "open_handoff", "send_handoff"]


@value
class Accepted:
    """A handed task that is the caller's now, with its claims and what was handed over with it."""

    task: Task
    handoff: Handoff
    claims: tuple[Claim, ...]


# ------------------------------------------------------------------------------------------ looking


# ---------------------------------------------------------------------------------------- accepting


def accept_handoff(
    repo: Repository, session: Session, task_id: str, digest: str = "", on_step: Step = lambda _: None
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

    def work(tx: Transaction) -> Accepted | Refused:
        me = require_live(tx, session)
        on_step("begun")
        task = get_in(tx, task_id)
        handoff = open_handoff(tx, task_id)
        if handoff is None:
            return _again(tx, me, task, digest)
        _check_hash(handoff, digest)
        check_receiver(tx, repo, me, task, handoff)
        if me.role and task.role and me.role != task.role:
            raise forbidden(
                me.agent, me.role, f"a task for the role {task.role} is not for the role {me.role}"
            )
        outcome = accept_in(tx, repo, me, task, handoff, on_step)
        if not isinstance(outcome, tuple):
            return outcome
        accepted = newest_in(tx, task_id)
        assert accepted is not None
        return Accepted(task=outcome[0], handoff=accepted, claims=outcome[1])

    accepted = repo.change(work)
    on_step("accepted")
    return accepted


def _again(tx: Transaction, me: Session, task: Task, digest: str) -> Accepted:
    """What this session has accepted already; so a call whose answer was lost can be made again."""
    newest = newest_in(tx, task.id)
    if newest is None:
        raise not_handed(task)
    if newest.accepted_session == me.id and task.session == me.id and task.state in AT_WORK:
        _check_hash(newest, digest)
        claims = claims_of_task(tx, me.id, task.id)
        return Accepted(task=whole(tx, task), handoff=newest, claims=tuple(claims))
    if newest.accepted_by:
        raise Stale(
            f"{newest.accepted_by} has accepted {newest.id} already",
            code="HANDOFF_ACCEPTED",
            hint="`landlane next` gives you a task of your own",
            holder=newest.accepted_by,
            task=task.id,
        )
    raise not_handed(task)


def not_handed(task: Task) -> Malformed:
    """Return the error for a task that waits under no handoff."""
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


def check_receiver(tx: Transaction, repo: Repository, me: Session, task: Task, handoff: Handoff) -> None:
    """Refuse a session that the handoff is not for."""
    if task.state != READY:
        raise NotAllowed(
            f"{task.id} is {task.state}: it cannot be accepted now",
            code="TASK_WRONG_STATE",
            hint=f"`landlane task show {task.id}` tells why",
            state=task.state,
        )
    now = repo.store.wall_of(tx.now)
    is_for = is_addressed(handoff, me.agent, me.role) or now >= handoff.until
    if is_for or me.is_person:  # whoever declined may think again
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
