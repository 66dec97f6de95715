"""Agents and sessions as values, and when a lease ends."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.ids import Credentials
from landlane.patterns.pattern import Alternative, alternatives_overlap, covers_alternative
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from landlane.patterns.pattern import Kind, Pattern
    from landlane.values import Row

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

    @classmethod
    def from_row(cls, row: Row) -> Session:
        return cls(**row)

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

    @property
    def lease_ends_at(self) -> int:
        """When the session lapses if it shows no further sign of life."""
        return self.seen_at + self.lease_ms

    @property
    def is_person(self) -> bool:
        return self.kind == PERSON

    def is_alive(self, now: int) -> bool:
        return not self.has_ended and self.lease_ends_at > now


@value
class Claim:
    """A session's right to change what a pattern names, until its lease ends, under a fencing token.

    `alternatives` are those of the pattern; after a look for overlaps, only those that were near.
    """

    token: int
    pattern: str
    kind: Kind
    mode: str
    session: str
    agent: str
    task: str
    note: str
    ttl_ms: int
    granted_at: int
    until: int
    alternatives: tuple[Alternative, ...]

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> list[Claim]:
        """Return the claims in these rows, of which each is one alternative of a pattern."""
        by_token: dict[int, list[Row]] = {}
        for row in rows:
            by_token.setdefault(row["token"], []).append(row)
        return [
            cls(
                token=token,
                pattern=same[0]["pattern"],
                kind=same[0]["kind"],
                mode=same[0]["mode"],
                session=same[0]["session"],
                agent=same[0]["agent"],
                task=same[0]["task"],
                note=same[0]["note"],
                ttl_ms=same[0]["ttl_ms"],
                granted_at=same[0]["granted_at"],
                until=_claim_end(same[0]),
                alternatives=tuple(
                    dict.fromkeys(Alternative(key=row["key"], rest=row["rest"]) for row in same)
                ),
            )
            for token, same in by_token.items()
        ]

    def is_over(self, now: int) -> bool:
        """Return whether the claim has ended, also if it was not removed yet."""
        return self.until <= now

    def overlaps(self, pattern: Pattern) -> bool:
        return any(
            alternatives_overlap(mine, other) for mine in self.alternatives for other in pattern.alternatives
        )

    def covers(self, pattern: Pattern) -> bool:
        return covers_all(self.alternatives, pattern)


@value
class Waiter:
    """A session that waits in a queue, and what it waits for: a pattern for each alternative."""

    ticket: int
    session: str
    agent: str
    mode: str
    task: str
    since: int
    alive_until: int
    alternatives: tuple[Alternative, ...]
    patterns: tuple[str, ...]

    @property
    def is_for_slot(self) -> bool:
        return self.alternatives[0].key.startswith("//")  # no path has such a key

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> list[Waiter]:
        """Return the waiters in these rows, of which each is one alternative of a pattern."""
        by_ticket: dict[int, list[Row]] = {}
        for row in rows:
            by_ticket.setdefault(row["ticket"], []).append(row)
        return [
            cls(
                ticket=ticket,
                session=same[0]["session"],
                agent=same[0]["agent"],
                mode=same[0]["mode"],
                task=same[0]["task"],
                since=same[0]["since"],
                alive_until=same[0]["alive_until"],
                alternatives=tuple(Alternative(key=row["key"], rest=row["rest"]) for row in same),
                patterns=tuple(row["pattern"] for row in same),
            )
            for ticket, same in by_ticket.items()
        ]


@value
class HeldSlot:
    """A slot as the store keeps it.

    With `expires_at` it is used up until then, even if it was freed (`freed_at`) or its session has ended.
    """

    token: int
    id: str
    kind: str
    place: str
    name: str
    workspace: str
    amount: int
    session: str
    agent: str
    taken_at: int
    expires_at: int | None
    freed_at: int | None
    seen_at: int
    lease_ms: int
    ended_at: int | None

    @classmethod
    def from_row(cls, row: Row) -> HeldSlot:
        return cls(**row)

    @property
    def until(self) -> int:
        """When it comes back if its session shows no further sign of life."""
        return self.seen_at + self.lease_ms if self.expires_at is None else self.expires_at

    def is_used(self, now: int) -> bool:
        """Return whether nobody else can have it, unless its session turns out to be dead."""
        return self.ended_at is None if self.expires_at is None else self.expires_at > now

    def is_free(self, now: int) -> bool:
        """Return whether somebody else can have it; a session whose lease is over holds nothing."""
        return self.until <= now or not self.is_used(now)


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


def _claim_end(row: Row) -> int:
    if row["ended_at"] is not None:
        return 0  # with its session, whatever its own lease says
    return lease_end(row["granted_at"], row["seen_at"], row["ttl_ms"])


def lease_end(granted_at: int, seen_at: int, ttl_ms: int) -> int:
    """Return when a claim's lease ends if its session shows no further sign of life."""
    return max(granted_at, seen_at) + ttl_ms


def covers_all(held: Sequence[Alternative], wanted: Pattern) -> bool:
    """Return whether everything that a pattern names is covered by these alternatives."""
    return all(any(covers_alternative(mine, branch) for mine in held) for branch in wanted.alternatives)
