"""The session that a worker acts as while its supervisor holds the task.

A worker in a read-only role has its own session in that role, as a child of its supervisor's session. It may
ask a person, hand the task off, split it and give verdicts on behalf of the supervisor. Only the supervisor
ends the attempt, after the worker's last message, and has its result reviewed and checked.
"""

from __future__ import annotations

from landlane.ids import short_id
from landlane.sessions.client_sessions import ClientName, bind_session, list_links, list_subagents
from landlane.sessions.join import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot

_LINK = "worker"  # in place of the name of a coding client


def join_worker_session(repo: Repository, supervisor: Session, role: str) -> Joined:
    """Start the session of a supervisor's worker, under a name that no other session has."""
    name = f"{supervisor.agent}.w"
    while not (joined := join(repo, name, role=role, may_choose_role=True)).is_new:
        name = f"{supervisor.agent}.{short_id('w')[2:7]}"
    bind_session(repo, ClientName(client=_LINK, session=joined.session.id), joined, parent=supervisor.id)
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
