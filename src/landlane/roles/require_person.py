"""Refuse agents and roles where a person must decide."""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.roles.model import forbidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.sessions.model import Session


def check_person(session: Session) -> None:
    """Refuse callers that are not a person or that have a role.

    Raises:
        NotAllowed: the caller is an agent or a subagent, or has a role.
    """
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides what waits for a person")
    if not session.is_person:
        raise NotAllowed(
            f"{session.agent} is an agent: only a person answers a gate",
            code="NOT_A_PERSON",
            hint="a person runs it in a terminal of their own, that no agent was started from",
        )
