"""Where a sandboxed command works: the clone of its task, or one to be thrown away."""

from __future__ import annotations

import os

from landlane.exec.cleanup import PINS, checkout_in
from landlane.git.create_checkout import add_detached_clone, write_files
from landlane.git.discovery import HOME_POINTER
from landlane.git.lock import git_lock
from landlane.git.run import git_output, resolve_revision
from landlane.tasks.add import Added, add_task
from landlane.tasks.change import drop_task
from landlane.tasks.model import OVER, NewTask
from landlane.tasks.records import get_task
from landlane.values import value
from landlane.workspaces.model import CLONE
from landlane.workspaces.open import open_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.model import Session
    from landlane.workspaces.model import Workspace


@value
class Ground:
    """Where a command works. Without a workspace nothing of it comes back."""

    path: str
    task: str = ""
    has_own_task: bool = False
    workspace: Workspace | None = None


def make_ground(
    repo: Repository, caller: Session, session: Session, role: Role, *, task: str, title: str, scratch: str
) -> Ground:
    """Make the clone that a role works in; without a task, who writes gets one of this title.

    Raises:
        Held: another session is at work on the task.
        RepositoryError: git refuses.
    """
    if role.is_read_only:
        head = resolve_revision(repo.checkout, "HEAD")
        return Ground(path=throw_away_clone(repo, session, scratch, head), task=task)
    wanted = task or _own_task(repo, caller, role, title)
    try:
        opened = open_workspace(repo, session, wanted, kind=CLONE)
    except BaseException:
        if not task:
            drop_own(repo, caller, wanted, "it could not be begun")
        raise
    return Ground(path=opened.workspace.path, task=wanted, has_own_task=not task, workspace=opened.workspace)


def _own_task(repo: Repository, caller: Session, role: Role, title: str) -> str:
    outcome = add_task(repo, caller, NewTask(title=title, role=role.name), force=True)
    assert isinstance(outcome, Added)
    return outcome.task.id


def drop_own(repo: Repository, caller: Session, task: str, why: str) -> None:
    """End a task that was made for one run alone."""
    if get_task(repo, task).state not in OVER:
        drop_task(repo, caller, task, why)


def throw_away_clone(repo: Repository, session: Session, scratch: str, head: str) -> str:
    """A commit in a clone that nobody will miss; a ref keeps what it borrows."""
    path = checkout_in(scratch)
    pin = PINS + session.id
    if head:
        with git_lock(repo.common_dir, f"pin {session.id}"):
            if repo.checkout.common_dir != repo.common_dir:
                git_output(repo.home, "fetch", "--quiet", "--no-tags", repo.checkout.root, f"{head}:{pin}")
            else:
                git_output(repo.home, "update-ref", pin, head)
    add_detached_clone(repo.home, path, head, pin)
    if head:
        write_files(path)
    with open(os.path.join(path, ".git", HOME_POINTER), "w", encoding="utf-8") as file:
        file.write(repo.common_dir + "\n")
    return path
