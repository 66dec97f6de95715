"""Look up sessions and their processes."""

from __future__ import annotations

from landlane.platform.process_identity import Process
from landlane.sessions.model import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.store.interface import Snapshot, Transaction


def find_session(snapshot: Snapshot, session_id: str) -> Session | None:
    """Return a session, ended or not."""
    row = snapshot.one("session_get", session=session_id)
    return Session.from_row(row) if row is not None else None


def get_session(snapshot: Snapshot, session_id: str) -> Session:
    """Return a session that exists."""
    session = find_session(snapshot, session_id)
    assert session is not None
    return session


def find_live_session(snapshot: Snapshot, session_id: str) -> Session | None:
    """Return a session unless it has ended."""
    session = find_session(snapshot, session_id)
    return session if session is not None and not session.has_ended else None


def lock_live_session(tx: Transaction, session_id: str) -> Session | None:
    """Return a session unless it has ended; it cannot end before the transaction does."""
    row = tx.one("session_lock", session=session_id)
    session = Session.from_row(row) if row is not None else None
    return session if session is not None and not session.has_ended else None


def find_latest_session(snapshot: Snapshot, agent: str) -> Session | None:
    """Return the newest session of an agent, ended or not."""
    row = snapshot.one("session_latest", agent=agent)
    return Session.from_row(row) if row is not None else None


def list_live_sessions(snapshot: Snapshot) -> list[Session]:
    """Return the sessions that have not ended."""
    return [Session.from_row(row) for row in snapshot.all("sessions_live")]


def list_processes(snapshot: Snapshot, session_id: str) -> list[Process]:
    """Return the processes that are registered for a session."""
    return [Process(**row) for row in snapshot.all("processes_of", session=session_id)]


def find_parent(snapshot: Snapshot, session_id: str) -> str:
    """Return the session whose subagent this one is; empty if there is none."""
    row = snapshot.one("parent_of", session=session_id)
    return row["parent"] if row is not None else ""


def find_ancestors(snapshot: Snapshot, session_id: str) -> set[str]:
    """Return the sessions whose subagent this one is, directly or not: what they hold is also its own."""
    ancestors: set[str] = set()
    while (session_id := find_parent(snapshot, session_id)) and session_id not in ancestors:
        ancestors.add(session_id)
    return ancestors
