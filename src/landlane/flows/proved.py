"""Submitting what a worker had proved when its keeper was killed, just before it was to be submitted."""

from __future__ import annotations

from landlane.domain.claims import EXCLUSIVE, Refused, Request
from landlane.domain.landings import OPEN
from landlane.domain.retries import AttemptEnd
from landlane.domain.running import lander_role
from landlane.domain.tasks import LANDING
from landlane.errors import LandlaneError, Stale, StoreError
from landlane.flows.submitting import submit_branch, why_out_of_reach
from landlane.operations.attempts import attempts_of
from landlane.operations.claims import take
from landlane.operations.landings import list_landings
from landlane.operations.sessions import join, leave
from landlane.operations.task_rows import pattern_pairs
from landlane.operations.tasks import list_tasks
from landlane.operations.unsubmitted import send_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.domain.agents import Session
    from landlane.domain.tasks import Task
    from landlane.flows.site import Site
    from landlane.operations.context import Context
    from landlane.ports.evidence import Witness

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
