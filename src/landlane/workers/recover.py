"""Recover after killed supervisors: end their attempts, close their workspaces, submit finished work."""

from __future__ import annotations

from landlane.claims.model import ClaimMode, Refused, Request
from landlane.claims.take import take
from landlane.errors import LandlaneError, Stale, StoreError
from landlane.landing.model import OPEN as OPEN_LANDINGS
from landlane.landing.records import list_landings
from landlane.landing.rejected_tasks import fail_unsubmitted
from landlane.landing.submit import submit_branch, why_commit_unavailable
from landlane.landing.target_rules import lander_role
from landlane.platform.process import Process
from landlane.reviews.close import adopt
from landlane.reviews.records import approved_waiting
from landlane.sessions.join import join, leave
from landlane.sessions.leases import find_live_session, find_session
from landlane.sessions.worker_sessions import list_worker_sessions
from landlane.tasks.attempts import attempts_of, change_attempt, running_attempts
from landlane.tasks.model import IN_PROGRESS, LANDING, AttemptOutcome, AttemptState
from landlane.tasks.records import get_task, list_tasks, task_patterns
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import AttemptEnd
from landlane.workspaces.close import close_workspace
from landlane.workspaces.model import OPEN
from landlane.workspaces.records import is_held, list_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.reviews.model import Review
    from landlane.sessions.model import Session
    from landlane.tasks.model import Attempt, Task


_SILENT_MS = 60_000  # supervisors record a heartbeat every few seconds
_KEEP_WORKSPACE = frozenset({AttemptOutcome.LANDING, AttemptOutcome.REVIEW, AttemptOutcome.WAITING})
_WHY = "the process that looked after it was killed"
_MAX_FEEDBACK = 3500


def end_orphaned_attempts(repo: Repository) -> list[str]:
    """Return the tasks of killed supervisors of this machine to the queue, and return a line about each.

    Attempts on other machines end when their lease expires.
    """
    lines: list[str] = []
    for attempt in running_attempts(repo):
        if is_orphaned(repo, attempt):
            _end_orphaned(repo, attempt)
            lines.append(
                f"attempt {attempt.attempt} at {attempt.task} was left by its supervisor, which was killed"
            )
        elif attempt.machine != repo.processes.machine and _has_session_ended(repo, attempt):
            reason = "its lease ran out"
            change_attempt(
                repo, attempt, "ended", state=AttemptState.ENDED, outcome=AttemptOutcome.LOST, reason=reason
            )
    return lines


def is_orphaned(repo: Repository, attempt: Attempt) -> bool:
    """Return whether the supervisor of an attempt ran on this machine and has certainly ended."""
    if attempt.machine != repo.processes.machine:
        return False
    supervisor, here = Process(**attempt.keeper), repo.processes.current()
    if supervisor.boot_id == here.boot_id:
        return repo.processes.is_gone(supervisor)
    # This machine was rebooted, or another machine with the same image and name runs the attempt now.
    is_silent = abs(repo.wall_ms() - attempt.seen_at) > _SILENT_MS
    return is_silent or _has_session_ended(repo, attempt)


def _find_session(repo: Repository, attempt: Attempt) -> Session | None:
    return repo.store.view(lambda snapshot: find_session(snapshot, attempt.session))


def _has_session_ended(repo: Repository, attempt: Attempt) -> bool:
    session = _find_session(repo, attempt)
    return session is None or session.has_ended


def _end_orphaned(repo: Repository, attempt: Attempt) -> None:
    session = _find_session(repo, attempt)
    outcome = AttemptOutcome.LOST
    task = get_task(repo, attempt.task)
    is_owner = task.session == attempt.session and task.state in IN_PROGRESS
    if session is not None and not session.has_ended and is_owner:
        took_ms = max(repo.wall_ms() - attempt.started_at, 0)
        end = AttemptEnd(code="killed", feedback=_WHY, took_ms=took_ms)
        try:
            outcome = AttemptOutcome(end_attempt(repo, session, task.id, end).outcome)
        except LandlaneError as error:
            repo.report(str(error))
    for worker_session in repo.store.view(lambda snapshot: list_worker_sessions(snapshot, attempt.session)):
        try:
            leave(repo, worker_session)
        except LandlaneError:
            continue  # it expired
    change_attempt(
        repo, attempt, "ended", state=AttemptState.ENDED, outcome=outcome, code="killed", reason=_WHY
    )


def close_abandoned_workspaces(repo: Repository) -> list[str]:
    """Save and close the workspaces that supervisors of this clone left, and return a line about each.

    A submitted change keeps its workspace until it has landed, and a task that waits for a person until then.
    """
    lines: list[str] = []
    for workspace in list_local(repo, (OPEN,)):
        if is_held(repo, workspace):
            continue
        attempts = [one for one in attempts_of(repo, workspace.task) if one.session == workspace.session]
        if (
            not attempts
            or attempts[-1].state != AttemptState.ENDED
            or attempts[-1].outcome in _KEEP_WORKSPACE
        ):
            continue
        closed = close_workspace(repo, None, workspace, force=True)
        saved = f", what was not committed is saved as {closed.rescue}" if closed.rescue else ""
        lines.append(f"{workspace.id} of {workspace.task} is closed{saved}")
    return lines


def submit_approved(repo: Repository) -> list[str]:
    """Submit approved reviews whose author is gone, and return a line about each.

    Several processes may call it at once: each review is submitted by one of them.

    Raises:
        StoreError: the store is not available.
    """
    return [_submit_review(repo, review) for review in approved_waiting(repo)]


def _submit_review(repo: Repository, review: Review) -> str:
    if why := why_commit_unavailable(repo, review.head):
        return f"{review.task} was approved at {review.head[:12]}, which is not here: {why}"
    session = _join_as_lander(repo, review.id, get_task(repo, review.task))
    try:
        task = adopt(repo, session, review.id)
        try:
            landing_id = submit_branch(repo, session, task.branch, task.id).landing.id
        except StoreError:
            raise
        except LandlaneError as error:
            end = _not_submitted(error, review.change or review.head)
            end_attempt(repo, session, task.id, end)
            return f"{review.task} was approved, and cannot land: {end.feedback}"
    except StoreError:
        raise
    except LandlaneError as error:
        return f"{review.id}: {error.message}"  # another process was faster, or the task has moved on
    finally:
        leave(repo, session)
    return f"{review.task} was approved at {review.head[:12]}, and lands as {landing_id}"


def verified_waiting(repo: Repository) -> list[Task]:
    """Return verified tasks that are not queued and whose supervisor is gone."""
    tasks = list_tasks(repo, (LANDING,))
    if not tasks:
        return []
    queued = {landing.task for landing in list_landings(repo, OPEN_LANDINGS)}
    return [task for task in tasks if task.id not in queued and _is_abandoned(repo, task)]


def _is_abandoned(repo: Repository, task: Task) -> bool:
    """Return whether a supervisor owned the task and its session is over. Others submit themselves."""
    if not any(attempt.session == task.session for attempt in attempts_of(repo, task.id)):
        return False
    return repo.store.view(lambda snapshot: find_live_session(snapshot, task.session)) is None


def submit_verified(repo: Repository) -> list[str]:
    """Submit verified tasks whose supervisor is gone, and return a line about each.

    Raises:
        StoreError: the store is not available.
    """
    return [_submit_task(repo, task) for task in verified_waiting(repo)]


def _submit_task(repo: Repository, task: Task) -> str:
    if task.head and (why := why_commit_unavailable(repo, task.head)):
        return f"{task.id} was proved at {task.head[:12]}, which is not here: {why}"
    session = _join_as_lander(repo, task.id, task)
    try:
        if not _claim_paths(repo, session, task):
            return f"{task.id} is proved, and others hold what it changes"
        landing_id = submit_branch(repo, session, task.branch, task.id).landing.id
    except StoreError:
        raise
    except Stale as error:
        return f"{task.id}: {error.message}"  # another process was faster
    except LandlaneError as error:
        # Submitting again would fail again, so the attempt has failed; the next one gets the reason.
        end = _not_submitted(error, task.head)
        try:
            fail_unsubmitted(repo, session, task, end)
        except Stale as stale:
            return f"{task.id}: {stale.message}"
        return f"{task.id} was proved, and cannot be submitted: {end.feedback}"
    finally:
        leave(repo, session)
    return f"{task.id} was proved at {task.head[:12]}, and lands as {landing_id}"


def _join_as_lander(repo: Repository, id: str, task: Task) -> Session:
    role, here = lander_role(repo.settings, task), repo.processes.current()
    return join(repo, f"lands-{id}", role=role, process=here, may_choose_role=True, is_internal=True).session


def _not_submitted(error: LandlaneError, change: str) -> AttemptEnd:
    feedback = f"{error.message} [{error.code}]\n{error.hint}"[:_MAX_FEEDBACK]
    return AttemptEnd(code="not_submitted", feedback=feedback, change=change)


def _claim_paths(repo: Repository, session: Session, task: Task) -> bool:
    patterns = task_patterns(repo, task)
    if not patterns:
        return True
    request = Request(patterns=patterns, mode=ClaimMode.EXCLUSIVE, ttl_ms=session.lease_ms, task=task.id)
    return not isinstance(take(repo, session, request), Refused)
