"""Finish interrupted openings and closings, and close finished and abandoned workspaces."""

from __future__ import annotations

from landlane.errors import LandlaneError, RepositoryError
from landlane.git.target import fetch_target, find_target
from landlane.tasks.model import FINAL
from landlane.tasks.records import get_task
from landlane.workspaces import records
from landlane.workspaces.close import (
    close_workspace,
    discard_opening,
    finish_closing,
    list_processes_inside,
    process_ended,
)
from landlane.workspaces.model import CLOSING, IN_TRANSITION, OPEN, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.close import Closed


WOULD_CLOSE = "can be removed"  # the outcome in a dry run


def finish_interrupted(repo: Repository, session: Session | None = None) -> list[str]:
    """Finish openings and closings whose process has ended; return a line about each."""
    lines: list[str] = []
    for one in records.list_local(repo, IN_TRANSITION):
        # A child of the process that ended, such as git or an installer, may still work in it.
        if records.is_in_this_process(repo, one) or list_processes_inside(one):
            continue
        taken = records.take_over(repo, one)
        if taken is None:
            continue
        try:
            if taken.state == CLOSING:
                finish_closing(repo, session, taken)
                lines.append(f"finished removing {taken.id}, which had been interrupted")
            elif discard_opening(repo, session, taken, process_ended()):
                lines.append(f"removed {taken.id}, whose opening had been interrupted")
        except (LandlaneError, OSError) as error:
            step = "closing" if taken.state == CLOSING else "opening"
            lines.append(f"{step} {taken.id} was interrupted and cannot be finished: {error}")
    return lines


def prune(
    repo: Repository, session: Session, *, is_dry: bool = False
) -> list[tuple[Workspace, str, Closed | None]]:
    """Close finished and abandoned workspaces; return for each what was done with it, or why it stays."""
    for line in finish_interrupted(repo, session):
        repo.report(line)
    _fetch_target(repo)
    outcomes: list[tuple[Workspace, str, Closed | None]] = []
    for one in records.list_workspaces(repo):
        try:
            reason = reason_to_keep(repo, session, one)
            if reason or is_dry:
                outcomes.append((one, reason or WOULD_CLOSE, None))
                continue
            closed = close_workspace(repo, session, one)
            outcomes.append((one, "rescued and closed" if closed.rescue else "closed", closed))
        except (LandlaneError, OSError) as error:
            outcomes.append((one, str(error), None))
    return outcomes


def _fetch_target(repo: Repository) -> None:
    """Fetch the target, which shows what was merged elsewhere; if that fails, branches are kept."""
    try:
        trouble = fetch_target(repo.home, find_target(repo.home, repo.settings))
    except RepositoryError as error:
        trouble = error.message
    if trouble:
        repo.report(f"using what was fetched last: {trouble}")


def reason_to_keep(repo: Repository, session: Session | None, one: Workspace) -> str:
    """Return why `prune` keeps a workspace; empty if it closes it."""
    if not records.is_local(repo, one):
        return "it belongs to another clone or machine"
    if one.state != OPEN:
        return f"it is {one.state}"
    task = get_task(repo, one.task)
    if task.state in FINAL:
        return ""
    if records.is_held(repo, one):
        is_own = session is not None and one.session == session.id
        return "you are using it" if is_own else f"{one.agent} is using it"
    if task.session and task.session != one.session and task.attempt == one.attempt:
        return f"{task.owner} is working on {one.task}"
    return ""
