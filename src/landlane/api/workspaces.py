"""Workspaces and commits for Python agents: `Landlane.workspaces`."""

from __future__ import annotations

import os

from landlane.app.repair_config import prepare_git
from landlane.rescue.restore import restore
from landlane.rescue.save import saved_work
from landlane.workspaces.close import close_workspace
from landlane.workspaces.commit import commit, make_commit_request
from landlane.workspaces.locate import find_workspace, workspaces_folder
from landlane.workspaces.open import open_workspace
from landlane.workspaces.survey import survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.repository import Repository
    from landlane.rescue.refs import Rescue
    from landlane.sessions.model import Session
    from landlane.workspaces.close import Closed
    from landlane.workspaces.commit import Made
    from landlane.workspaces.open import Opened
    from landlane.workspaces.survey import WorkspaceStatus


class Workspaces:
    """Checkouts of one repository, each made for a task, as one session sees them."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def open(self, task: str, *, kind: str = "", offline: bool = False) -> Opened:
        """Create a checkout and a branch for a task, or return the existing one.

        Raises:
            RepositoryError: the remote cannot be reached, or git refuses.
            Held: another session is working on the task.
        """
        opened = open_workspace(
            self._repo.require_git(), self._session(), task, kind=kind, is_offline=offline
        )
        self._repo.settle()
        return opened

    def list(self, *, closed: bool = False) -> list[WorkspaceStatus]:
        """Return all workspaces, with their state on disk."""
        return survey(self._repo.require_git(), with_closed=closed)

    def close(self, workspace: str, *, force: bool = False) -> Closed:
        """Save what exists nowhere else, then remove a workspace, given by its id, task or folder.

        Raises:
            Held: another live session uses it, or processes run in it.
        """
        repo = prepare_git(self._repo)
        closed = close_workspace(repo, self._session(), find_workspace(repo, workspace), force=force)
        self._repo.settle()
        return closed

    def commit(self, message: str, *paths: str, task: str = "") -> Made:
        """Commit only these paths of the opened checkout, if the session's claims cover them.

        Raises:
            NotAllowed: a changed path is not claimed.
            Held: another session holds one.
            Stale: a lease has expired, or the commit would undo what landed in the meantime.
        """
        repo = prepare_git(self._repo)
        made = commit(
            repo,
            self._session(),
            make_commit_request(repo, paths, repo.checkout.root, message=message, task=task),
        )
        self._repo.settle()
        return made

    def rescues(self) -> Sequence[Rescue]:
        """Return all work that was saved before something was removed."""
        return saved_work(self._repo.require_git())

    def restore(self, rescue: str, into: str | os.PathLike[str] = "") -> str:
        """Restore saved work into a clean checkout or a new folder; return its path.

        Raises:
            RepositoryError: there is no such rescue, or the checkout has uncommitted work.
        """
        repo = prepare_git(self._repo)
        place = os.path.abspath(into) if into else ""
        restored = restore(repo, self._session(), rescue, place, workspaces_folder(repo))
        self._repo.settle()
        return restored.path
