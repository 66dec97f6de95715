"""Restore saved work, unless other sessions are at work in the checkout that it would change."""

from __future__ import annotations

import os

from landlane.errors import NotAllowed
from landlane.rescue.restore import Restored, restore
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.other_sessions import others_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session


def restore_saved(repo: Repository, session: Session, rescue_id: str, into: str = "") -> Restored:
    """Restore a rescue into a clean checkout or a new folder; without `into`, among the workspaces.

    Raises:
        NotAllowed: others are at work in that checkout; a restore moves its HEAD and replaces its files.
        RepositoryError: there is no such rescue, or the checkout has uncommitted work.
    """
    others = others_in(repo, os.path.realpath(into), session) if into and os.path.lexists(into) else []
    if others:
        names = ", ".join(other.session.agent for other in others)
        raise NotAllowed(
            f"{rescue_id} is not restored while others are at work in that checkout ({names})",
            code="SHARED_CHECKOUT",
            hint=f"restore it into a new folder: landlane rescue restore {rescue_id}",
            others=[{"agent": other.session.agent, "paths": other.paths} for other in others],
        )
    return restore(repo, session, rescue_id, into, workspaces_folder(repo))
