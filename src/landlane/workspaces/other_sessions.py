"""Find the other sessions in a checkout, and their claims, which a careless git command there could hit."""

from __future__ import annotations

import os

from landlane.claims.take import list_claims
from landlane.errors import RepositoryError
from landlane.git.discovery import find_checkout
from landlane.platform.process import working_folder
from landlane.sessions.join import live_sessions
from landlane.sessions.leases import list_processes
from landlane.values import value
from landlane.workspaces.records import list_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.repository import Repository
    from landlane.sessions.model import Session


@value
class OtherSession:
    """Another live session on this machine, and its claims."""

    session: Session
    claims: tuple[Claim, ...]

    @property
    def paths(self) -> list[str]:
        """The patterns that it holds."""
        return [claim.pattern for claim in self.claims]


def others_in(repo: Repository, root: str, caller: Session | None) -> list[OtherSession]:
    """Return the sessions besides the caller's that are live in the checkout at `root`.

    These hold a claim and have no workspace but this one, or have a process whose working folder is in it.
    """
    workspaces = list_open(repo)
    is_workspace = any(one.path == root for one in workspaces)
    found: list[OtherSession] = []
    for other in _list_others(repo, caller):
        own = [one.path for one in workspaces if one.is_owned_by(other.session)]
        works_here = root in own or (not own and not is_workspace)
        if (other.claims and works_here) or _has_process_in(repo, other.session, root):
            found.append(other)
    return found


def others_anywhere(repo: Repository, caller: Session | None) -> list[OtherSession]:
    """Return the sessions besides the caller's that have claims or a workspace in the repository."""
    workspaces = list_open(repo)
    return [
        other
        for other in _list_others(repo, caller)
        if other.claims or any(one.is_owned_by(other.session) for one in workspaces)
    ]


def _list_others(repo: Repository, caller: Session | None) -> list[OtherSession]:
    claims = list_claims(repo)
    return [
        OtherSession(session=session, claims=tuple(claim for claim in claims if claim.session == session.id))
        for session in live_sessions(repo)
        if session.machine == repo.processes.machine and (caller is None or session.id != caller.id)
    ]


def _has_process_in(repo: Repository, session: Session, root: str) -> bool:
    """Return whether a registered process of a session has its working folder in the checkout at `root`."""
    here = repo.processes.current()
    for process in repo.store.view(lambda snapshot: list_processes(snapshot, session.id)):
        is_local = (process.boot_id, process.namespace) == (here.boot_id, here.namespace)
        if is_local and not repo.processes.is_gone(process) and _root_of(process.pid) == root:
            return True
    return False


def _root_of(pid: int) -> str:
    """Return the root of the innermost checkout that a process works in; empty if there is none."""
    folder = working_folder(pid)
    try:
        return find_checkout(folder).root if folder and os.path.isdir(folder) else ""
    except RepositoryError:
        return ""
