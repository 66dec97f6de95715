"""What people decide about the queue: eject an entry, approve or reject a held one, resume a paused queue."""

from __future__ import annotations

from landlane.errors import NotAllowed, Stale
from landlane.git.target import commit_at, fetch_target, find_target
from landlane.landing.after_landing import delete_entry_ref
from landlane.landing.model import (
    EJECTED,
    HELD,
    QUEUE_LEASE_MS,
    QUEUED,
    TESTING,
    Landing,
    Queue,
    QueueState,
    Rejection,
    person_rejection,
    queue_lease_name,
)
from landlane.landing.move_target import remote_gone
from landlane.landing.outcomes import find_live_author, reject_entry
from landlane.landing.records import get_landing, get_queue, lock_landing, put_landing, update_queue
from landlane.roles.model import forbidden
from landlane.sessions.leases import find_session
from landlane.sessions.notices import add_notice
from landlane.sessions.runner_lease import RunnerBusy, end_runner, wait_for_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

_EJECT_WAIT_MS = 10_000


def eject_entry(repo: Repository, session: Session, landing_id: str, why: str) -> Landing:
    """Take an entry out of the queue: its author may, and everyone once the author's session has ended.

    Raises:
        NotAllowed: another session submitted it, or it is being moved onto the target.
    """
    landing = get_landing(repo, landing_id)
    target = find_target(repo.home, repo.settings)
    is_own = landing.session == session.id or landing.agent == session.agent
    if not is_own and not session.is_person and _is_alive(repo, landing.session):
        raise NotAllowed(
            f"{landing_id} is {landing.agent}'s",
            code="NOT_YOURS",
            hint=f"ask {landing.agent}, or a person at a terminal",
            holder=landing.agent,
        )
    lease = None
    if landing.state == TESTING:  # its runner must have stopped, or it could land at the same time
        lease = wait_for_runner(
            repo, session, queue_lease_name(target.branch), QUEUE_LEASE_MS, _EJECT_WAIT_MS
        )
        if isinstance(lease, RunnerBusy):
            raise NotAllowed(
                f"{landing_id} is being tested by {lease.agent}",
                code="LANDING_BUSY",
                hint="wait for the verdict, or end that process",
                holder=lease.agent,
            )
    try:
        if get_queue(repo, target.branch).is_moving(landing_id):
            raise NotAllowed(
                f"{landing_id} is on its way onto {target.branch}",
                code="LANDING_BUSY",
                hint="`landlane queue run --drain` settles it",
            )
        rejection = Rejection(code="EJECTED", reason=f"{session.agent}: {why}", hint="")
        ended = reject_entry(repo, lease, landing_id, rejection, state=EJECTED)
        delete_entry_ref(repo, target, ended)
        return ended
    finally:
        if lease is not None:
            end_runner(repo, lease)


def _is_alive(repo: Repository, session_id: str) -> bool:
    session, now = repo.store.view(lambda snapshot: (find_session(snapshot, session_id), snapshot.now))
    return session is not None and session.is_alive(now)


def decide_held_entry(
    repo: Repository, session: Session, landing_id: str, *, is_approved: bool, head: str = "", why: str = ""
) -> Landing:
    """Let a person approve a held entry at its current head, or reject it.

    Raises:
        NotAllowed: it does not wait for a person, or the session has a role.
        Stale: its head differs from the one the person saw.
    """
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides what waits for a person")
    held = get_landing(repo, landing_id)
    if held.state != HELD:
        raise NotAllowed(
            f"{landing_id} is {held.state}: it does not wait for a person",
            code="NOT_WAITING",
            hint="`landlane gate list` shows what does",
        )
    if head and not held.head.startswith(head):
        raise Stale(
            f"{landing_id} is at {held.head[:12]}, not at {head[:12]}",
            code="HEAD_MOVED",
            hint=f"look at the change again: git show {held.head[:12]}",
        )
    if not is_approved:
        return reject_entry(repo, None, landing_id, person_rejection(session.agent, why))

    def work(tx: Transaction) -> Landing:
        landing = lock_landing(tx, landing_id)
        if landing.state != HELD or landing.head != held.head:
            raise Stale(f"{landing_id} has changed meanwhile", code="HEAD_MOVED", hint="look at it again")
        landing = landing.become(QUEUED, approved_by=session.agent, approved_head=landing.head, reason="")
        put_landing(tx, landing, "approved", session)
        if find_live_author(tx, landing) is not None:
            text = f"{session.agent} approved {landing_id} ({landing.branch}); it is queued to land"
            add_notice(tx, landing.session, text)
        tx.has_freed = True
        return landing

    return repo.change(work)


def resume_queue(repo: Repository, session: Session, why: str) -> Queue:
    """Resume a paused queue from the current tip of the target.

    Raises:
        RepositoryError: the remote cannot be asked.
    """
    target = find_target(repo.home, repo.settings)
    trouble = fetch_target(repo.home, target)
    if trouble:
        raise remote_gone(target, trouble)
    tip = commit_at(repo.home, target.remote_ref or target.ref)
    about = {"target": target.branch, "tip": tip, "why": why}
    repo.change(lambda tx: tx.record("queue.resuming", session.agent, session.id, about))
    return update_queue(
        repo, None, target.branch, "resumed", state=QueueState.RUNNING, reason="", code="", tip=tip
    )
