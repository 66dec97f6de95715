"""Submit verified work whose supervisor was killed just before it would have submitted it."""

from __future__ import annotations

from landlane.claims.model import EXCLUSIVE, Refused, Request
from landlane.claims.take import take
from landlane.errors import LandlaneError, Stale, StoreError
from landlane.landing.failed_submission import send_back
from landlane.landing.model import OPEN
from landlane.landing.records import list_landings
from landlane.landing.role_check import lander_role
from landlane.landing.submit import submit_branch, why_out_of_reach
from landlane.sessions.join import join, leave
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import LANDING
from landlane.tasks.read import list_tasks
from landlane.tasks.retry_rules import AttemptEnd
from landlane.tasks.rows import pattern_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Context, Site
    from landlane.sessions.model import Session
    from landlane.tasks.evidence_model import Witness
    from landlane.tasks.model import Task


_MOST_FEEDBACK = 3500


def proved_waiting(context: Context) -> list[Task]:
    """Tasks whose work a worker has proved, and that nobody goes on with: they stand in no queue."""
    tasks = list_tasks(context, (LANDING,))
    if not tasks:
        return []
    queued = {one.task for one in list_landings(context, OPEN)}
    return [task for task in tasks if task.id not in queued and _is_left(context, task)]


def _is_left(context: Context, task: Task) -> bool:
    """Whether it was a keeper's, and that keeper's session is over: others land their work themselves."""
    if not any(one.session == task.session for one in attempts_of(context, task.id)):
        return False
    row = context.store.view(lambda reading: reading.one("session_get", session=task.session))
    return row is None or row[12] is not None


def submit_proved(site: Site, witness: Witness, *, is_shared: bool) -> list[str]:
    """Submit all of these, as they were proved; tells what was done. Who comes second finds nothing to do.

    Raises:
        StoreError: the store is not to be had.
    """
    return [_submit(site, witness, task, is_shared=is_shared) for task in proved_waiting(site.context)]


def _submit(site: Site, witness: Witness, task: Task, *, is_shared: bool) -> str:
    context = site.context
    if task.head and (why := why_out_of_reach(site, task.head)):
        return f"{task.id} was proved at {task.head[:12]}, which is not here: {why}"
    here = context.processes.current()
    joined = join(
        context, f"lands-{task.id}", role=lander_role(site.settings, task), process=here, may_choose_role=True
    )
    session = joined.session
    try:
        if not _claim(context, session, task):
            return f"{task.id} is proved, and others hold what it changes"
        landing = submit_branch(site, session, witness, task.branch, task.id, is_shared=is_shared).landing
    except StoreError:
        raise
    except Stale as error:
        return f"{task.id}: {error.message}"  # somebody was quicker
    except LandlaneError as error:
        return _give_up(context, session, task, error)
    finally:
        leave(context, session)
    return f"{task.id} was proved at {task.head[:12]}, and lands as {landing.id}"


def _give_up(context: Context, session: Session, task: Task, error: LandlaneError) -> str:
    """It will not be taken by asking again: the attempt has failed, and the next one is told why."""
    told = f"{error.code}: {error.message}. {error.hint}"
    end = AttemptEnd(
        task=task.id,
        attempt=task.attempt,
        code="not_submitted",
        feedback=told[:_MOST_FEEDBACK],
        change=task.head,
        is_progress=True,
    )
    try:
        send_back(context, session, end)
    except Stale as stale:
        return f"{task.id}: {stale.message}"
    return f"{task.id} was proved, and cannot be submitted: {told}"


def _claim(context: Context, session: Session, task: Task) -> bool:
    pattern_of = context.repository.pattern_of
    patterns = tuple(pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths))
    if not patterns:
        return True
    wish = Request(patterns=patterns, mode=EXCLUSIVE, ttl_ms=session.lease_ms, task=task.id)
    return not isinstance(take(context, session, wish), Refused)
