"""Submit approved or verified work whose author or supervisor is gone."""

from __future__ import annotations

from landlane.claims.model import ClaimMode, Refused, Request
from landlane.claims.take import take
from landlane.errors import LandlaneError, Stale, StoreError
from landlane.landing.model import OPEN
from landlane.landing.records import list_landings
from landlane.landing.rejected_tasks import fail_unsubmitted
from landlane.landing.submit import submit_branch, why_commit_unavailable
from landlane.landing.target_rules import lander_role
from landlane.reviews.close import adopt
from landlane.reviews.give_verdict import approved_waiting
from landlane.sessions.join import join, leave
from landlane.sessions.read import find_live_session
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import LANDING
from landlane.tasks.read import get_task, list_tasks
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import AttemptEnd
from landlane.tasks.rows import pattern_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.reviews.model import Review
    from landlane.sessions.model import Session
    from landlane.tasks.evidence_model import Witness
    from landlane.tasks.model import Task


_MOST_FEEDBACK = 3500


def land_approved(repo: Repository, witness: Witness) -> list[str]:
    """Submit everything that was approved and that nobody goes on with; tells what was done.

    Any number of processes may call it: one of them gets each of these.

    Raises:
        StoreError: the store is not to be had.
    """
    return [_land_review(repo, witness, review) for review in approved_waiting(repo)]


def _land_review(repo: Repository, witness: Witness, review: Review) -> str:
    if why := why_commit_unavailable(repo, review.head):
        return f"{review.task} was approved at {review.head[:12]}, which is not here: {why}"
    task = get_task(repo, review.task)
    here = repo.processes.current()
    joined = join(
        repo,
        f"lands-{review.id}",
        role=lander_role(repo.settings, task),
        process=here,
        may_choose_role=True,
    )
    session = joined.session
    try:
        task = adopt(repo, session, review.id)
        return _submit_review(repo, session, witness, review, task.branch)
    except StoreError:
        raise
    except LandlaneError as error:
        return f"{review.id}: {error.message}"  # somebody was quicker, or it went another way
    finally:
        leave(repo, session)


def _submit_review(repo: Repository, session: Session, witness: Witness, review: Review, branch: str) -> str:
    try:
        landing = submit_branch(repo, session, witness, branch, review.task).landing
    except StoreError:
        raise
    except LandlaneError as error:
        told = f"{error.code}: {error.message}. {error.hint}"
        end = AttemptEnd(
            task=review.task,
            attempt=review.attempt,
            code="not_submitted",
            feedback=told[:_MOST_FEEDBACK],
            change=review.change or review.head,
            is_progress=True,
        )
        end_attempt(repo, session, review.task, end)
        return f"{review.task} was approved, and cannot land: {told}"
    return f"{review.task} was approved at {review.head[:12]}, and lands as {landing.id}"


def proved_waiting(repo: Repository) -> list[Task]:
    """Tasks whose work a worker has proved, and that nobody goes on with: they stand in no queue."""
    tasks = list_tasks(repo, (LANDING,))
    if not tasks:
        return []
    queued = {one.task for one in list_landings(repo, OPEN)}
    return [task for task in tasks if task.id not in queued and _is_abandoned(repo, task)]


def _is_abandoned(repo: Repository, task: Task) -> bool:
    """Whether it was a keeper's, and that keeper's session is over: others land their work themselves."""
    if not any(one.session == task.session for one in attempts_of(repo, task.id)):
        return False
    return repo.store.view(lambda snapshot: find_live_session(snapshot, task.session)) is None


def submit_proved(repo: Repository, witness: Witness) -> list[str]:
    """Submit all of these, as they were proved; tells what was done. Who comes second finds nothing to do.

    Raises:
        StoreError: the store is not to be had.
    """
    return [_submit_task(repo, witness, task) for task in proved_waiting(repo)]


def _submit_task(repo: Repository, witness: Witness, task: Task) -> str:
    if task.head and (why := why_commit_unavailable(repo, task.head)):
        return f"{task.id} was proved at {task.head[:12]}, which is not here: {why}"
    here = repo.processes.current()
    joined = join(
        repo, f"lands-{task.id}", role=lander_role(repo.settings, task), process=here, may_choose_role=True
    )
    session = joined.session
    try:
        if not _claim(repo, session, task):
            return f"{task.id} is proved, and others hold what it changes"
        landing = submit_branch(repo, session, witness, task.branch, task.id).landing
    except StoreError:
        raise
    except Stale as error:
        return f"{task.id}: {error.message}"  # somebody was quicker
    except LandlaneError as error:
        return _give_up(repo, session, task, error)
    finally:
        leave(repo, session)
    return f"{task.id} was proved at {task.head[:12]}, and lands as {landing.id}"


def _give_up(repo: Repository, session: Session, task: Task, error: LandlaneError) -> str:
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
        fail_unsubmitted(repo, session, end)
    except Stale as stale:
        return f"{task.id}: {stale.message}"
    return f"{task.id} was proved, and cannot be submitted: {told}"


def _claim(repo: Repository, session: Session, task: Task) -> bool:
    pattern_of = repo.git.pattern_of
    patterns = tuple(pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths))
    if not patterns:
        return True
    wish = Request(patterns=patterns, mode=ClaimMode.EXCLUSIVE, ttl_ms=session.lease_ms, task=task.id)
    return not isinstance(take(repo, session, wish), Refused)
