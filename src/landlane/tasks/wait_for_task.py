"""Wait until a task can be taken."""

from __future__ import annotations

from landlane.sessions.leases import is_dead, touch
from landlane.tasks.offer_order import ready_in_order
from landlane.tasks.on_change import settle_due
from landlane.tasks.pick import Picked, backing_off, next_task, nothing_ready, try_to_pick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Listener, Reading
    from landlane.tasks.pick import NothingReady


_LOOK_MS = 1000  # a lease that runs out wakes nobody


def wait_for_task(
    context: Context, session: Session, role: str, wait_ms: int, base: Callable[[], str] = lambda: ""
) -> Picked | NothingReady:
    """Take the best task, waiting for one at most so long.

    Raises:
        Stale: the session is over.
    """
    if wait_ms <= 0:
        return next_task(context, session, role, base)
    listener = context.store.listen()  # before looking, so that nothing added in between is missed
    try:
        return _wait(context, session, role, wait_ms, base, listener)
    finally:
        listener.close()


def _wait(
    context: Context,
    session: Session,
    role: str,
    wait_ms: int,
    base: Callable[[], str],
    listener: Listener,
) -> Picked | NothingReady:
    settle_due(context)
    outcome = try_to_pick(context, session, role, base)
    now = _clock(context)
    deadline = now + wait_ms
    while not isinstance(outcome, Picked):
        if now >= deadline:
            return nothing_ready(context, session, outcome)
        now = _sleep(context, listener, min(now + _LOOK_MS, deadline))
        touch(context.store, session)  # who waits is alive
        settle_due(context)  # a deadline wakes nobody
        if context.store.view(lambda reading: _is_worth_trying(reading, context, role or session.role)):
            outcome = try_to_pick(context, session, role, base)
    return outcome


def _sleep(context: Context, listener: Listener, until: int) -> int:
    """Until something was freed or the time is up; tells the time then."""
    now = _clock(context)
    while now < until and listener.wait((until - now) / 1000) == "entry":  # nothing was freed by that
        now = _clock(context)
    return _clock(context)


def _clock(context: Context) -> int:
    return context.store.view(lambda reading: reading.now)


def _is_worth_trying(reading: Reading, context: Context, role: str) -> bool:
    """A cheap look without a lock: something is ready, or a lease is over, or an owner is dead."""
    not_yet = backing_off(reading, context)
    return (
        any(task_id not in not_yet for task_id, _ in ready_in_order(reading, role))
        or reading.one("lapse_due") is not None
        or any(is_dead(reading, row["session"], context.processes) for row in reading.all("tasks_owners"))
    )
