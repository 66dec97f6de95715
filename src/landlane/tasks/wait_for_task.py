"""Wait until a task can be taken."""

from __future__ import annotations

from landlane.sessions.leases import is_dead, touch
from landlane.tasks.offer_order import ready_in_order
from landlane.tasks.on_change import settle_due
from landlane.tasks.pick import Picked, backing_off, next_task, nothing_ready, try_to_pick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Listener, Snapshot
    from landlane.tasks.pick import NothingReady


_LOOK_MS = 1000  # a lease that runs out wakes nobody


def wait_for_task(
    repo: Repository, session: Session, role: str, wait_ms: int, base: Callable[[], str] = lambda: ""
) -> Picked | NothingReady:
    """Take the best task, waiting for one at most so long.

    Raises:
        Stale: the session is over.
    """
    if wait_ms <= 0:
        return next_task(repo, session, role, base)
    listener = repo.store.listen()  # before looking, so that nothing added in between is missed
    try:
        return _wait(repo, session, role, wait_ms, base, listener)
    finally:
        listener.close()


def _wait(
    repo: Repository,
    session: Session,
    role: str,
    wait_ms: int,
    base: Callable[[], str],
    listener: Listener,
) -> Picked | NothingReady:
    settle_due(repo)
    outcome = try_to_pick(repo, session, role, base)
    now = _clock(repo)
    deadline = now + wait_ms
    while not isinstance(outcome, Picked):
        if now >= deadline:
            return nothing_ready(repo, session, outcome)
        now = _sleep(repo, listener, min(now + _LOOK_MS, deadline))
        touch(repo.store, session)  # who waits is alive
        settle_due(repo)  # a deadline wakes nobody
        if repo.store.view(lambda snapshot: _is_worth_trying(snapshot, repo, role or session.role)):
            outcome = try_to_pick(repo, session, role, base)
    return outcome


def _sleep(repo: Repository, listener: Listener, until: int) -> int:
    """Until something was freed or the time is up; tells the time then."""
    now = _clock(repo)
    while now < until and listener.wait((until - now) / 1000) == "entry":  # nothing was freed by that
        now = _clock(repo)
    return _clock(repo)


def _clock(repo: Repository) -> int:
    return repo.store.view(lambda snapshot: snapshot.now)


def _is_worth_trying(snapshot: Snapshot, repo: Repository, role: str) -> bool:
    """A cheap look without a lock: something is ready, or a lease is over, or an owner is dead."""
    not_yet = backing_off(snapshot, repo)
    return (
        any(task_id not in not_yet for task_id, _ in ready_in_order(snapshot, role))
        or snapshot.one("lapse_due") is not None
        or any(is_dead(snapshot, row["session"], repo.processes) for row in snapshot.all("tasks_owners"))
    )
