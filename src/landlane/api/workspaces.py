"""Workspaces and commits for Python agents: `Landlane.workspaces`."""

from __future__ import annotations

import os

from landlane.api.session_view import SessionView
from landlane.app.repair_config import prepare_git
from landlane.rescue.refs import list_rescues
from landlane.workspaces.close import close_workspace
from landlane.workspaces.commit import commit, make_commit_request
from landlane.workspaces.locate import find_workspace
from landlane.workspaces.open import open_workspace
from landlane.workspaces.restore_saved import restore_saved
from landlane.workspaces.survey import survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.api.shared_values import Closed, Opened, Rescue, WorkspaceStatus
    from landlane.workspaces.commit import CommitResult


class Workspaces(SessionView):
    """Checkouts of one repository, each made for a task, as one session sees them."""

    def open(self, task: str, *, kind: str = "", offline: bool = False) -> Opened:
        """Create a checkout and a branch for a task, or return the existing one.

        Raises:
            RepositoryError: the remote cannot be reached, or git refuses.
            Held: another session is working on the task.
        """
        repo = self._repo.require_git()
        return self._settled(open_workspace(repo, self._session, task, kind=kind, is_offline=offline))

    def list(self, *, closed: bool = False) -> list[WorkspaceStatus]:
        """Return all workspaces, with their state on disk."""
        return self._public(survey(self._repo.require_git(), with_closed=closed))

    def close(self, workspace: str, *, force: bool = False) -> Closed:
        """Save what exists nowhere else, then remove a workspace, given by its id, task or folder.

        Raises:
            Held: another live session uses it, or processes run in it.
        """
        repo = prepare_git(self._repo)
        return self._settled(
            close_workspace(repo, self._session, find_workspace(repo, workspace), force=force)
        )

    def commit(self, message: str, *paths: str, task: str = "") -> CommitResult:
        """Commit only these paths of the opened checkout, if the session's claims cover them.

        Raises:
            NotAllowed: a changed path is not claimed.
            Held: another session holds one.
            Stale: a lease has expired, or the commit would undo what landed in the meantime.
        """
        repo = prepare_git(self._repo)
        request = make_commit_request(repo, paths, repo.checkout.root, message=message, task=task)
        return self._settled(commit(repo, self._session, request))

    def rescues(self) -> Sequence[Rescue]:
        """Return all work that was saved before something was removed."""
        return self._public(list_rescues(self._repo.require_git().common_dir))

    def restore(self, rescue: str, into: str | os.PathLike[str] = "") -> str:
        """Restore saved work into a clean checkout or a new folder; return its path.

        Raises:
            NotAllowed: others are at work in that checkout.
            RepositoryError: there is no such rescue, or the checkout has uncommitted work.
        """
        repo = prepare_git(self._repo)
        folder = os.path.abspath(into) if into else ""
        restored = restore_saved(repo, self._session, rescue, folder)
        return self._settled(restored).path
