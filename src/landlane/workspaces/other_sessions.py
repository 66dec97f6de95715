"""Who else is at work in a checkout, with which claims: those whom a careless git command there would hit."""

from __future__ import annotations

import os

from landlane.claims.read import list_claims
from landlane.errors import RepositoryError
from landlane.git.discovery import find_checkout
from landlane.platform.proc import working_folder
from landlane.sessions.join import live_sessions
from landlane.sessions.read import list_processes
from landlane.store import records
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.repository import Repository
    from landlane.sessions.model import Session


@value
class Other:
    """A session that is at work beside ours, and what it holds."""

    session: Session
    claims: tuple[Claim, ...]

    @property
    def paths(self) -> list[str]:
        """What it holds, in words."""
        return [claim.pattern for claim in self.claims]


def open_workspaces(repo: Repository) -> list[records.Document]:
    """The workspaces of this repository that are open on this machine."""
    machine = repo.processes.machine
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, "workspace", ("open",)))
    return [
        one
        for one in found
        if one["machine"] == machine and one["home"] == repo.common_dir and os.path.isdir(one["path"])
    ]


def is_owner(workspace: records.Document, session: Session) -> bool:
    """Whether a workspace is this session's, or that of an earlier incarnation of its agent."""
    return workspace["session"] == session.id or workspace["agent"] == session.agent


def others_in(repo: Repository, root: str, caller: Session | None) -> list[Other]:
    """The sessions besides the caller's that are live in the checkout at `root`.

    These are the ones that hold a claim and have no workspace but this one, and those of which a process
    stands in it.
    """
    workspaces = open_workspaces(repo)
    found: list[Other] = []
    for other in _others(repo, caller):
        own = [one["path"] for one in workspaces if is_owner(one, other.session)]
        is_at_home = root in own or (not own and not any(one["path"] == root for one in workspaces))
        if (other.claims and is_at_home) or _stands_in(repo, other.session, root):
            found.append(other)
    return found


def others_anywhere(repo: Repository, caller: Session | None) -> list[Other]:
    """The sessions besides the caller's that are at work anywhere in the repository."""
    workspaces = open_workspaces(repo)
    return [
        other
        for other in _others(repo, caller)
        if other.claims or any(is_owner(one, other.session) for one in workspaces)
    ]


def _others(repo: Repository, caller: Session | None) -> list[Other]:
    machine = repo.processes.machine
    claims = list_claims(repo)
    return [
        Other(session=session, claims=tuple(claim for claim in claims if claim.session == session.id))
        for session in live_sessions(repo)
        if session.machine == machine and (caller is None or session.id != caller.id)
    ]


def _stands_in(repo: Repository, session: Session, root: str) -> bool:
    """Whether a registered process of a session has its working folder in the checkout at `root`."""
    processes = repo.store.view(lambda snapshot: list_processes(snapshot, session.id))
    here = repo.processes.current()
    for process in processes:
        is_local = (process.boot_id, process.namespace) == (here.boot_id, here.namespace)
        if not is_local or repo.processes.is_gone(process):
            continue
        if _root_of(working_folder(process.pid)) == root:
            return True
    return False


def _root_of(folder: str) -> str:
    """The root of the checkout that a folder lies in; a worktree inside of another is one of its own."""
    if not folder or not os.path.isdir(folder):
        return ""
    try:
        return find_checkout(folder).root
    except RepositoryError:
        return ""
