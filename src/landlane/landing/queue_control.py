"""Eject an entry; resume a paused queue."""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.git.target import commit_at, fetch_target, find_target
from landlane.landing import records as operations
from landlane.landing.after_landing import let_go
from landlane.landing.bounce_reasons import ejected
from landlane.landing.model import EJECTED, TESTING
from landlane.landing.outcomes import bounce
from landlane.landing.queue import LEASE_MS, queue_name, remote_gone
from landlane.sessions.read import find_session
from landlane.sessions.runner_lease import RunnerBusy, RunnerLease, end_runner, wait_for_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.landing.model import Landing, Queue
    from landlane.repository import Repository
    from landlane.sessions.model import Session


def eject(repo: Repository, session: Session, landing_id: str, why: str) -> Landing:
    """Take an entry out of the queue: its author may, and anybody once the author has gone.

    Raises:
        NotAllowed: it is another's, or it is being moved onto the target just now.
    """
    landing = operations.get_landing(repo, landing_id)
    target = find_target(repo.home, repo.settings)
    is_theirs = landing.session == session.id or landing.agent == session.agent
    if not is_theirs and session.kind != "person" and _is_alive(repo, landing.session):
        raise NotAllowed(
            f"{landing_id} is {landing.agent}'s",
            code="NOT_YOURS",
            hint=f"ask {landing.agent}, or a person at a terminal",
            holder=landing.agent,
        )
    lease = None
    if landing.state == TESTING:  # whoever tests it must have let go, or its landing could be on its way
        got = wait_for_runner(repo, session, queue_name(target.branch), LEASE_MS, 10_000)
        if isinstance(got, RunnerBusy):
            raise NotAllowed(
                f"{landing_id} is being tested by {got.agent}",
                code="LANDING_BUSY",
                hint="wait for the verdict, or end that process",
                holder=got.agent,
            )
        lease = got
    try:
        return _eject(repo, session, landing_id, why, lease)
    finally:
        if lease is not None:
            end_runner(repo, lease)


def _is_alive(repo: Repository, session: str) -> bool:
    look = repo.store.view
    found, now = look(lambda snapshot: (find_session(snapshot, session), snapshot.now))
    return found is not None and found.is_alive(now)


def _eject(
    repo: Repository, session: Session, landing_id: str, why: str, lease: RunnerLease | None
) -> Landing:
    target = find_target(repo.home, repo.settings)
    queue = operations.get_queue(repo, target.branch)
    entries = queue.move.get("entries")
    if isinstance(entries, list) and landing_id in entries:
        raise NotAllowed(
            f"{landing_id} is on its way onto {target.branch}",
            code="LANDING_BUSY",
            hint="`landlane queue run --drain` settles it",
        )
    said = ejected(session.agent, why)
    ended = bounce(
        repo,
        lease,
        landing_id,
        reason=said.reason,
        code=said.code,
        hint=said.hint,
        wall_ms=repo.wall_ms(),
        state=EJECTED,
    )
    let_go(repo, target, ended)
    return ended


def resume(repo: Repository, session: Session, why: str) -> Queue:
    """Go on after a pause, from where the target is now.

    Raises:
        RepositoryError: the remote cannot be asked.
    """
    target = find_target(repo.home, repo.settings)
    trouble = fetch_target(repo.home, target)
    if trouble:
        raise remote_gone(target, trouble)
    tip = commit_at(repo.home, target.remote_ref or target.ref)
    repo.change(
        lambda tx: tx.record(
            "queue.resuming", session.agent, session.id, {"target": target.branch, "tip": tip, "why": why}
        )
    )
    return operations.change_queue(
        repo, None, target.branch, "resumed", state="running", reason="", code="", tip=tip
    )
