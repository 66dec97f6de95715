"""Close finished and abandoned workspaces."""

from __future__ import annotations

from landlane.errors import LandlaneError, RepositoryError
from landlane.git.target import fetch_target, find_target
from landlane.tasks.model import OVER
from landlane.tasks.records import get_task
from landlane.workspaces import records as operations
from landlane.workspaces.close import close_workspace
from landlane.workspaces.model import OPEN, Workspace
from landlane.workspaces.recover import mend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session

    Step = Callable[[str], None]
    from landlane.workspaces.close import Closed


def prune(
    repo: Repository, session: Session, *, is_dry: bool = False
) -> list[tuple[Workspace, str, Closed | None]]:
    """Close what is finished or forsaken; of each workspace, what became of it or why it stays."""
    for told in mend(repo, session):
        repo.report(told)
    _look_at_remote(repo)
    found: list[tuple[Workspace, str, Closed | None]] = []
    for one in operations.list_workspaces(repo):
        try:
            reason = _reason_to_stay(repo, session, one)
            if reason or is_dry:
                found.append((one, reason or "would be closed", None))
                continue
            closed = close_workspace(repo, session, one)
            found.append((one, "rescued and closed" if closed.rescue else "closed", closed))
        except (LandlaneError, OSError) as error:
            found.append((one, str(error), None))
    return found


def _look_at_remote(repo: Repository) -> None:
    """What was merged elsewhere is known only after a fetch; without the remote, branches just stay."""
    try:
        trouble = fetch_target(repo.home, find_target(repo.home, repo.settings))
    except RepositoryError as error:
        trouble = error.message
    if trouble:
        repo.report(f"judged by what was fetched last: {trouble}")


def _reason_to_stay(repo: Repository, session: Session, one: Workspace) -> str:
    if not operations.is_here(repo, one, repo.common_dir):
        return "it belongs to another clone or machine"
    if one.state != OPEN:
        return f"it is {one.state}"
    task = get_task(repo, one.task)
    if task.state in OVER:
        return ""
    if operations.is_held(repo, one):
        return "its session lives" if one.session != session.id else "it is yours"
    if task.session and task.session != one.session and task.attempt == one.attempt:
        return f"{task.owner} is at work on {one.task}"
    return ""
