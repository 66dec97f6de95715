"""Waiting for a task: the next one is taken as soon as it is ready and its paths are free."""

from __future__ import annotations

from interlock.operations.tasks import NothingReady, Picked, next_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.domain.agents import Session
    from interlock.operations.context import Context

_LOOK_MS = 1000  # a lease that runs out wakes nobody


def wait_for_task(context: Context, session: Session, role: str, wait_ms: int) -> Picked | NothingReady:
    """Take the best task, waiting for one at most so long.

    Raises:
        Stale: the session is over.
    """
    if wait_ms <= 0:
        return next_task(context, session, role)
    listener = context.store.listen()  # before looking, so that nothing added in between is missed
    try:
        now = context.store.view(lambda reading: reading.now)
        deadline = now + wait_ms
        while True:
            outcome = next_task(context, session, role)
            if isinstance(outcome, Picked):
                return outcome
            now = context.store.view(lambda reading: reading.now)
            if now >= deadline:
                return outcome
            pause = min(_LOOK_MS, deadline - now)
            wake_at = now + pause
            while listener.wait(max(wake_at - now, 1) / 1000) == "entry":  # nothing was freed by that
                now = context.store.view(lambda reading: reading.now)
                if now >= wake_at:
                    break
    finally:
        listener.close()
