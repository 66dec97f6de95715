"""End attempts whose supervisor died, and return their tasks to the queue."""

from __future__ import annotations

from landlane.errors import LandlaneError
from landlane.platform.process_identity import Process
from landlane.sessions.join import leave
from landlane.sessions.read import find_session
from landlane.sessions.worker_sessions import hands_of
from landlane.tasks.attempts import attempts_of, change_attempt, running_attempts
from landlane.tasks.model import AT_WORK, ENDED
from landlane.tasks.records import get_task
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import AttemptEnd
from landlane.workspaces.close import close_workspace
from landlane.workspaces.model import OPEN
from landlane.workspaces.records import is_held, is_here, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.tasks.model import Attempt


_SILENT_MS = 60_000  # keepers give a sign of life every few seconds
_KEEPING = frozenset({"landing", "review", "waiting"})
_WHY = "the process that looked after it was killed"


def end_orphaned(repo: Repository) -> list[str]:
    """Put back what the keepers of this machine left that were killed; tells what was done.

    Those of other machines are found by their lease, which nobody renews.
    """
    done: list[str] = []
    for one in running_attempts(repo):
        if is_orphaned(repo, one):
            _put_back(repo, one)
            done.append(f"attempt {one.attempt} at {one.task} was left by its keeper, which was killed")
        elif one.machine != repo.processes.machine and _is_over(repo, one):
            change_attempt(repo, one, "ended", state=ENDED, outcome="lost", reason="its lease ran out")
    return done


def close_left(repo: Repository) -> list[str]:
    """Close workspaces that keepers of this clone left, with everything in them saved; tells what was done.

    What was submitted keeps its workspace until it has landed, and what waits for a person until then.
    """
    done: list[str] = []
    for one in list_workspaces(repo):
        if one.state != OPEN or not is_here(repo, one, repo.common_dir) or is_held(repo, one):
            continue
        tries = [each for each in attempts_of(repo, one.task) if each.session == one.session]
        if not tries or tries[-1].state != ENDED or tries[-1].outcome in _KEEPING:
            continue
        closed = close_workspace(repo, None, one, force=True)
        saved = f", what was not committed is saved as {closed.rescue}" if closed.rescue else ""
        done.append(f"{one.id} of {one.task} is closed{saved}")
    return done


def is_orphaned(repo: Repository, attempt: Attempt) -> bool:
    """Whether the keeper of an attempt was one of this machine, and is provably gone."""
    if attempt.machine != repo.processes.machine:
        return False
    keeper, here = Process(**attempt.keeper), repo.processes.current()
    if keeper.boot_id == here.boot_id:
        return repo.processes.is_gone(keeper)
    # This machine was started anew; or it is another one of the same image and name, which is at work now.
    now = repo.store.wall_of(repo.store.view(lambda snapshot: snapshot.now))
    return abs(now - attempt.seen_at) > _SILENT_MS or _is_over(repo, attempt)


def _is_over(repo: Repository, attempt: Attempt) -> bool:
    session = _session_of(repo, attempt)
    return session is None or session.has_ended


def _put_back(repo: Repository, attempt: Attempt) -> None:
    session = _session_of(repo, attempt)
    outcome = "lost"
    task = get_task(repo, attempt.task)
    is_theirs = task.session == attempt.session and task.state in AT_WORK
    if session is not None and not session.has_ended and is_theirs:
        end = AttemptEnd(
            task=task.id,
            attempt=attempt.attempt,
            code="killed",
            feedback=_WHY,
            took_ms=max(repo.wall_ms() - attempt.started_at, 0),
        )
        try:
            outcome = end_attempt(repo, session, task.id, end).outcome
        except LandlaneError as error:
            repo.report(str(error))
    _end_hands(repo, attempt)
    change_attempt(repo, attempt, "ended", state=ENDED, outcome=outcome, code="killed", reason=_WHY)


def _end_hands(repo: Repository, attempt: Attempt) -> None:
    for one in repo.store.view(lambda snapshot: hands_of(snapshot, attempt.session)):
        try:
            leave(repo, one)
        except LandlaneError:
            continue  # it lapsed meanwhile


def _session_of(repo: Repository, attempt: Attempt) -> Session | None:
    return repo.store.view(lambda snapshot: find_session(snapshot, attempt.session))
