"""Agents and sessions as values, and when a lease ends."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.ids import Credentials
from landlane.values import value

PERSON = "person"
AGENT = "agent"
HOLDERS = frozenset({"landing", "gate", "handoff"})  # sessions that only keep claims: nobody acts for them

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-")
_LONGEST_NAME = 64


@value
class Session:
    """One incarnation of an agent."""

    id: str
    agent: str
    generation: int
    kind: str
    role: str
    machine: str
    secret_hash: str
    lease_ms: int
    started_at: int
    seen_at: int
    shortest_ms: int
    lapses_at: int
    ended_at: int | None


def check_agent_name(name: str) -> str:
    """The name itself when it can name an agent.

    Raises:
        Malformed: it is empty, too long, or holds anything but letters, digits and `. _ @ -`.
    """
    if not name or len(name) > _LONGEST_NAME or name[0] in ".-" or not _NAME_CHARACTERS.issuperset(name):
        raise Malformed(
            f"{name[:40]!r} cannot name an agent",
            code="BAD_NAME",
            hint=f"use 1 to {_LONGEST_NAME} letters, digits or . _ @ - and begin with a letter or digit",
        )
    return name


def parse_credentials(text: str) -> Credentials:
    """The id and the secret out of `LANDLANE_SESSION`.

    Raises:
        Malformed: the text has not the form `id:secret`.
    """
    session, colon, secret = text.partition(":")
    if not colon or not session.startswith("s-") or not secret:
        raise Malformed(
            "LANDLANE_SESSION is not of the form id:secret",
            code="BAD_SESSION",
            hint="use what `landlane join --json` answers: session.id, a colon, session.secret",
        )
    return Credentials(session=session, secret=secret)


def ends_at(granted_at: int, seen_at: int, ttl_ms: int) -> int:
    """When a claim's lease is over if its session shows no further sign of life."""
    return max(granted_at, seen_at) + ttl_ms
