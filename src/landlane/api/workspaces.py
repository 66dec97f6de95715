"""Workspaces, commits and landings for Python agents: `Landlane.workspaces` and `Landlane.landings`."""

from __future__ import annotations

import os

from landlane.rescue.restore import restore
from landlane.rescue.save import saved_work
from landlane.workspaces.close import close_workspace
from landlane.workspaces.commit import commit, make_wish
from landlane.workspaces.locate import find_workspace, workspaces_folder
from landlane.workspaces.open import open_workspace
from landlane.workspaces.survey import survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.app.open import House
    from landlane.rescue.refs import Rescue
    from landlane.sessions.model import Session
    from landlane.workspaces.close import Closed
    from landlane.workspaces.commit import Made
    from landlane.workspaces.open import Opened
    from landlane.workspaces.survey import Surveyed


class Workspaces:
    """Checkouts of one repository, each made for a task, as one session sees them."""

    def __init__(self, house: House, session: Callable[[], Session]) -> None:
        self._house = house
        self._session = session

    def open(self, task: str, *, kind: str = "", offline: bool = False) -> Opened:
        """Make a checkout and a branch for a task, or give back the one that is there.

        Raises:
            RepositoryError: the remote cannot be reached, or git refuses.
            Held: another session is at work on the task.
        """
        opened = open_workspace(self._house.site(), self._session(), task, kind=kind, is_offline=offline)
        self._house.settle()
        return opened

    def list(self, *, closed: bool = False) -> list[Surveyed]:
        """All workspaces, with what is found of them on the disk."""
        return survey(self._house.site(), with_closed=closed)

    def close(self, workspace: str, *, force: bool = False) -> Closed:
        """Save what exists nowhere else, then remove a workspace, named by its id, task or folder.

        Raises:
            Held: another live session has it, or live processes are in it.
        """
        site = self._house.site()
        closed = close_workspace(site, self._session(), find_workspace(site, workspace), force=force)
        self._house.settle()
        return closed

    def commit(self, message: str, *paths: str, task: str = "") -> Made:
        """Commit only these paths of the checkout that was opened, if the session's claims cover them.

        Raises:
            NotAllowed: a changed path is not claimed.
            Held: another session holds one.
            Stale: a lease is over, or the commit would undo what landed meanwhile.
        """
        site = self._house.site()
        made = commit(
            site, self._session(), make_wish(site, paths, site.here.root, message=message, task=task)
        )
        self._house.settle()
        return made

    def rescues(self) -> Sequence[Rescue]:
        """All that was saved before something was removed."""
        return saved_work(self._house.site())

    def restore(self, rescue: str, into: str | os.PathLike[str] = "") -> str:
        """Bring saved work back into a clean checkout or a new folder; tells where it is.

        Raises:
            RepositoryError: there is no such rescue, or the checkout has work of its own.
        """
        site = self._house.site()
        place = os.path.abspath(into) if into else ""
        restored = restore(site, self._session(), rescue, place, workspaces_folder(site))
        self._house.settle()
        return restored.path
