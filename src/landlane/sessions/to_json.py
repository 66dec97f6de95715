"""Sessions as JSON."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.sessions.signs_of_life import Activity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.sessions.join import Joined
    from landlane.sessions.json_types import OwnSessionJson, SessionJson
    from landlane.sessions.model import Session
    from landlane.store.interface import Store


def session_json(session: Session, store: Store, activity: Activity | None = None) -> SessionJson:
    """Return a session as JSON, without its secret.

    `seen` is exact to `seen_accuracy_seconds`: the last sign of life can be that much later.
    """
    if activity is None:
        activity = Activity(seen_at=store.wall_of(session.seen_at), accuracy_ms=session.shortest_ms // 3)
    return {
        "agent": session.agent,
        "id": session.id,
        "generation": session.generation,
        "kind": session.kind,
        "role": session.role or None,
        "machine": session.machine,
        "started": rfc3339(store.wall_of(session.started_at)),
        "seen": rfc3339(activity.seen_at),
        "seen_accuracy_seconds": None if session.is_holder else -(-activity.accuracy_ms // 1000),
        "doing": activity.doing or None,
        "until": rfc3339(store.wall_of(session.lease_ends_at)),
    }


def joined_json(joined: Joined, store: Store) -> dict[str, Any]:
    """Return the answer to `join`; only this one contains the secret."""
    session: OwnSessionJson = {**session_json(joined.session, store), "secret": joined.secret}
    return {"ok": True, "session": session, "new": joined.is_new}
