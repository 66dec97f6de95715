"""Check that a run can start: agent, checks, git identity."""

from __future__ import annotations

from landlane.errors import Malformed, RepositoryError
from landlane.git.run import run_in
from landlane.git.target import find_base, find_target, target_tip
from landlane.landing.target_settings import settings_at
from landlane.tasks.evidence_model import effective_kind
from landlane.tasks.model import BLOCKED, READY
from landlane.workers.agents import agent_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository
    from landlane.tasks.model import Task
    from landlane.workers.model import RunWish


def check_ready(repo: Repository, tasks: list[Task], wish: RunWish) -> None:
    """Refuse to begin when nobody could do anything, or nothing could land: better now than after an hour.

    Raises:
        Malformed: no task that is ready or blocked has an agent that is known.
        SettingsError: there are tasks whose work has to land, and nobody said how it is tested.
        RepositoryError: git does not know who commits, the remote cannot be reached, or lacks commits.
    """
    open_tasks = [task for task in tasks if task.state in (READY, BLOCKED)]
    first: Malformed | None = None
    for task in open_tasks:
        try:
            agent_for(repo.settings, task, wish.agent)
        except Malformed as error:
            first = first or error
        else:
            first = None
            break
    if first is not None:
        raise first
    if any(
        effective_kind(task.kind, has_output=bool(task.output), is_in_git=True) == "code"
        for task in open_tasks
    ):
        target = find_target(repo.home, repo.settings)
        if not wish.is_standing:  # a standing worker waits until it can be reached
            find_base(repo.home, target, is_offline=wish.is_offline)
        _check_pushed(repo, target)
        tip = target_tip(repo.home, target)
        if tip:
            settings_at(repo, target, tip)
        _check_identity(repo)


def _check_pushed(repo: Repository, target: TargetBranch) -> None:
    """Refuse to begin from commits that the remote lacks: every change would seem to bring them, too."""
    if not target.remote_ref:
        return
    ahead = run_in(repo.home, "rev-list", "--count", f"{target.remote_ref}..{target.ref}")
    count = ahead.stdout.strip()
    if not ahead.exit_code and count != "0":
        raise RepositoryError(
            f"{target.branch} has {count} commit{'s' if count != '1' else ''} that {target.remote} lacks",
            code="NOT_PUSHED",
            hint=f"git push {target.remote} {target.branch}; or, to land here and push yourself, say "
            '[landing] remote = "none" in landlane.toml',
        )


def _check_identity(repo: Repository) -> None:
    """Refuse to begin where no commit could be made in the end."""
    if run_in(repo.home, "var", "GIT_COMMITTER_IDENT").exit_code:
        raise RepositoryError(
            "git does not know who commits here",
            code="NO_IDENTITY",
            hint="git config user.name 'Your Name', and git config user.email you@example.org",
        )
