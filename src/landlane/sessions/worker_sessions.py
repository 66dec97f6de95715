"""The session that a worker acts as while its supervisor holds the task.

A worker in a read-only role has its own session in that role, as a child of its supervisor's session. It may
ask a person, hand the task off, split it and give verdicts on behalf of the supervisor. Only the supervisor
ends the attempt, after the worker's last message, and has its result reviewed and checked.
"""

from __future__ import annotations

from landlane.ids import short_id
from landlane.sessions.client_sessions import ClientName, bind_session, list_links, list_subagents
from landlane.sessions.join import find_live_by_name, join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.platform.process import Process
    from landlane.repository import Repository
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot

_LINK = "worker"  # in place of the name of a coding client


def join_worker_session(repo: Repository, supervisor: Session, role: str) -> Joined:
    """Start the session of a supervisor's worker, under a name that no other session has."""
    joined = join_under_free_name(repo, f"{supervisor.agent}.w", role=role)
    bind_session(repo, ClientName(client=_LINK, session=joined.session.id), joined, parent=supervisor.id)
    return joined


def join_under_free_name(repo: Repository, name: str, *, role: str, process: Process | None = None) -> Joined:
    """Start a session under this name, or under a longer one while that of an earlier attempt is alive."""
    while True:
        is_free = find_live_by_name(repo, name) is None
        chosen = name if is_free else f"{name}.{short_id('w')[2:6]}"
        joined = join(repo, chosen, role=role, process=process, may_choose_role=True, is_internal=True)
        if joined.is_new:
            return joined


def find_supervisor(snapshot: Snapshot, session: str) -> str:
    """Return the supervisor of a worker session or of a subagent of one; empty for other sessions."""
    visited: set[str] = set()
    while session and session not in visited:
        visited.add(session)
        links = list_links(snapshot, session)
        supervisor = next((link.parent for link in links if link.name.client == _LINK), "")
        if supervisor:
            return supervisor
        session = next((link.parent for link in links if link.parent), "")
    return ""


def list_worker_sessions(snapshot: Snapshot, supervisor: str) -> list[Session]:
    """Return the worker sessions of a supervisor that have not ended."""
    children = list_subagents(snapshot, supervisor)
    return [child for child in children if find_supervisor(snapshot, child.id) == supervisor]
