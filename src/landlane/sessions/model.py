"""Agents and sessions: names, incarnations, and the processes that stand behind them."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.values import value

PERSON = "person"
AGENT = "agent"
HOLDERS = frozenset({"landing", "gate", "handoff"})  # sessions that only keep claims: nobody acts for them

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-")
_LONGEST_NAME = 64


@value
class Process:
    """One run of a process, told apart from every other: a pid alone is used again."""

    boot_id: str
    namespace: str
    pid: int
    started: int


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


@value
class Credentials:
    """What a process must show to act for a session."""

    session: str
    secret: str
    agent: str = ""
    generation: int = 0


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


def check_label(text: str, what: str, longest: int = 64) -> str:
    """A short word such as a role or a task id, safe to print and to store."""
    if not text or len(text) > longest or not text.isprintable() or "/" in text or not text.isascii():
        raise Malformed(
            f"{text[:40]!r} is not a {what}",
            code=f"BAD_{what.upper().replace(' ', '_')}",
            hint=f"use 1 to {longest} printable ASCII characters without a slash",
        )
    return text


def check_text(text: str, what: str, longest: int) -> str:
    """Free text of a bounded size that every store can hold.

    Raises:
        Malformed: it is too long, or holds NUL bytes or text that is not valid Unicode.
    """
    if len(text) > longest:
        raise Malformed(
            f"the {what} has {len(text):,} characters; {longest:,} are the most",
            code="TEXT_TOO_LONG",
            hint="keep the text in a file and give its path",
        )
    if "\0" in text or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
        raise Malformed(
            f"the {what} holds a NUL byte or is not valid UTF-8",
            code="BAD_TEXT",
            hint="give plain text",
        )
    return text


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
