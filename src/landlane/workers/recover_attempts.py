"""End attempts whose supervisor died, and return their tasks to the queue."""

from __future__ import annotations

from landlane.errors import LandlaneError
from landlane.platform.process_identity import Process
from landlane.sessions.join import leave
from landlane.sessions.read import find_session
from landlane.sessions.worker_sessions import hands_of
from landlane.tasks.attempt_model import ENDED
from landlane.tasks.attempts import attempts_of, change_attempt, running_attempts
from landlane.tasks.model import AT_WORK
from landlane.tasks.read import get_task
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import AttemptEnd
from landlane.workspaces.close import close_workspace
from landlane.workspaces.model import OPEN
from landlane.workspaces.records import is_held, is_here, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Context, Site
    from landlane.sessions.model import Session
    from landlane.tasks.attempt_model import Attempt


_SILENT_MS = 60_000  # keepers give a sign of life every few seconds
_KEEPING = frozenset({"landing", "review", "waiting"})
_WHY = "the process that looked after it was killed"


def end_orphaned(site: Site) -> list[str]:
    """Put back what the keepers of this machine left that were killed; tells what was done.

    Those of other machines are found by their lease, which nobody renews.
    """
    done: list[str] = []
    for one in running_attempts(site.context):
        if is_orphaned(site.context, one):
            _put_back(site, one)
            done.append(f"attempt {one.attempt} at {one.task} was left by its keeper, which was killed")
        elif one.machine != site.context.processes.machine and _is_over(site.context, one):
            change_attempt(
                site.context, one, "ended", state=ENDED, outcome="lost", reason="its lease ran out"
            )
    return done


def close_left(site: Site) -> list[str]:
    """Close workspaces that keepers of this clone left, with everything in them saved; tells what was done.

    What was submitted keeps its workspace until it has landed, and what waits for a person until then.
    """
    done: list[str] = []
    for one in list_workspaces(site.context):
        if one.state != OPEN or not is_here(site.context, one, site.common_dir) or is_held(site.context, one):
            continue
        tries = [each for each in attempts_of(site.context, one.task) if each.session == one.session]
        if not tries or tries[-1].state != ENDED or tries[-1].outcome in _KEEPING:
            continue
        closed = close_workspace(site, None, one, force=True)
        saved = f", what was not committed is saved as {closed.rescue}" if closed.rescue else ""
        done.append(f"{one.id} of {one.task} is closed{saved}")
    return done


def is_orphaned(context: Context, attempt: Attempt) -> bool:
    """Whether the keeper of an attempt was one of this machine, and is provably gone."""
    if attempt.machine != context.processes.machine:
        return False
    keeper, here = Process(**attempt.keeper), context.processes.current()
    if keeper.boot_id == here.boot_id:
        return context.processes.is_gone(keeper)
    # This machine was started anew; or it is another one of the same image and name, which is at work now.
    now = context.store.wall_of(context.store.view(lambda reading: reading.now))
    return abs(now - attempt.seen_at) > _SILENT_MS or _is_over(context, attempt)


def _is_over(context: Context, attempt: Attempt) -> bool:
    session = _session_of(context, attempt)
    return session is None or session.has_ended


def _put_back(site: Site, attempt: Attempt) -> None:
    context = site.context
    session = _session_of(context, attempt)
    outcome = "lost"
    task = get_task(context, attempt.task)
    is_theirs = task.session == attempt.session and task.state in AT_WORK
    if session is not None and not session.has_ended and is_theirs:
        end = AttemptEnd(
            task=task.id,
            attempt=attempt.attempt,
            code="killed",
            feedback=_WHY,
            took_ms=max(site.wall_ms() - attempt.started_at, 0),
        )
        try:
            outcome = end_attempt(context, session, task.id, end).outcome
        except LandlaneError as error:
            site.tell(str(error))
    _end_hands(context, attempt)
    change_attempt(context, attempt, "ended", state=ENDED, outcome=outcome, code="killed", reason=_WHY)


def _end_hands(context: Context, attempt: Attempt) -> None:
    for one in context.store.view(lambda reading: hands_of(reading, attempt.session)):
        try:
            leave(context, one)
        except LandlaneError:
            continue  # it lapsed meanwhile


def _session_of(context: Context, attempt: Attempt) -> Session | None:
    return context.store.view(lambda reading: find_session(reading, attempt.session))
