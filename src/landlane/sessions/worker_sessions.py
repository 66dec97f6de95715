"""The session that a worker acts as while its supervisor holds the task.

A worker that may only look has a session of its own, in its own role, written down as a child of its
keeper's. Hands ask a person, hand the task over, split it and judge in the place of the keeper. What ends
the attempt is not theirs: the keeper does that after the worker's last word, and has what came of it judged
and proved.
"""

from __future__ import annotations

from landlane.ids import short_id
from landlane.sessions.client_sessions import ClientName, bind, children_of, links_of
from landlane.sessions.join import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot

_LINK = "worker"  # stands where the name of a coding client would, and is none


def join_hands(repo: Repository, keeper: Session, role: str) -> Joined:
    """Begin the session that the worker of a keeper acts as. One that is there already is somebody else."""
    name = f"{keeper.agent}.w"
    while not (joined := join(repo, name, role=role, may_choose_role=True)).is_new:
        name = f"{keeper.agent}.{short_id('w')[2:7]}"
    bind(repo, ClientName(client=_LINK, session=joined.session.id), joined, parent=keeper.id)
    return joined


def keeper_of(snapshot: Snapshot, session: str) -> str:
    """The session whose hands this one is, or a subagent of such hands; empty for everybody else."""
    seen: set[str] = set()
    while session and session not in seen:
        seen.add(session)
        links = links_of(snapshot, session)
        keeper = next((link.parent for link in links if link.client == _LINK), "")
        if keeper:
            return keeper
        session = next((link.parent for link in links if link.parent), "")
    return ""


def hands_of(snapshot: Snapshot, keeper: str) -> list[Session]:
    """The hands of a keeper that are still there."""
    return [child for child in children_of(snapshot, keeper) if keeper_of(snapshot, child.id) == keeper]
