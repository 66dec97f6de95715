"""Decide whose settings hold for a caller while the target branch has none."""

from __future__ import annotations

import os

from landlane.clients.model import CLIENT_VARIABLES
from landlane.sessions.join import registered_ancestor
from landlane.sessions.leases import find_session
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.join import Caller


def with_settings_of(repo: Repository, caller: Caller) -> Repository:
    """Return the repository with the settings that hold for a caller.

    Those in the working tree hold for a person only, since any agent can write them.
    """
    if not repo.held.is_own:
        return repo
    is_person = not (caller.name or caller.session_text or caller.agent_variable)
    is_person = is_person and not any(name in os.environ for name in CLIENT_VARIABLES)
    registered = registered_ancestor(repo) if is_person else None
    if registered is not None:
        own = repo.store.view(lambda snapshot: find_session(snapshot, registered.session))
        is_person = own is not None and own.is_person
    return repo if is_person else replace(repo, settings=repo.held.shared)
