"""Sessions and what they hold (claims, slots, places in a queue), as values; when a lease ends."""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed
from landlane.ids import Credentials, is_record_id
from landlane.patterns.pattern import Alternative, PatternKind, alternatives_overlap, covers_all
from landlane.values import from_columns, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from landlane.patterns.pattern import Pattern
    from landlane.values import Row

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-")
_LONGEST_NAME = 64
OWN_NAME = "landlane"  # in journal entries about what Landlane does by itself


class SessionKind(StrEnum):
    """Who acts in a session; the last four only hold claims for work that waits."""

    AGENT = "agent"
    PERSON = "person"
    LANDING = "landing"
    GATE = "gate"
    REVIEW = "review"
    HANDOFF = "handoff"


class ClaimMode(StrEnum):
    """Two overlapping claims of different sessions are possible only if both are shared."""

    EXCLUSIVE = "exclusive"
    SHARED = "shared"

    def conflicts_with(self, other: ClaimMode) -> bool:
        return ClaimMode.EXCLUSIVE in (self, other)


@value
class Session:
    """One run of an agent or person, from joining to leaving.

    Nothing that it holds ends before `lapses_at`; `shortest_ms` is the shortest lease among all of that.
    """

    id: str
    agent: str
    generation: int
    kind: SessionKind
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
        columns: dict[str, Any] = {**row, "kind": SessionKind(row["kind"])}
        return cls(**columns)

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

    @property
    def lease_ends_at(self) -> int:
        """When the session lapses if it shows no further sign of life."""
        return self.seen_at + self.lease_ms

    @property
    def is_person(self) -> bool:
        return self.kind is SessionKind.PERSON

    @property
    def is_holder(self) -> bool:
        """Whether the session only holds claims, and no agent or person acts in it."""
        return self.kind not in (SessionKind.AGENT, SessionKind.PERSON)

    def is_alive(self, now: int) -> bool:
        return not self.has_ended and self.lease_ends_at > now

    def is_touch_due(self, now: int) -> bool:
        """Return whether the last sign of life is old enough to write a new one."""
        return now - self.seen_at > self.shortest_ms // 3


@value
class Claim:
    """A session's right to change what a pattern names, until its lease ends, under a fencing token.

    `alternatives` are those of the pattern; after a search for overlaps, only the ones that were found.
    """

    token: int
    pattern: str
    kind: PatternKind
    mode: ClaimMode
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
        return [cls._from_rows(same) for same in by_token.values()]

    @classmethod
    def _from_rows(cls, rows: list[Row]) -> Claim:
        return from_columns(
            cls,
            rows[0],
            kind=PatternKind(rows[0]["kind"]),
            mode=ClaimMode(rows[0]["mode"]),
            until=_claim_end(rows[0]),
            alternatives=tuple(dict.fromkeys(_alternative(row) for row in rows)),
        )

    def is_over(self, now: int) -> bool:
        """Return whether the claim has ended, even if it was not removed yet."""
        return self.until <= now

    def overlaps(self, pattern: Pattern) -> bool:
        return any(
            alternatives_overlap(mine, other) for mine in self.alternatives for other in pattern.alternatives
        )

    def covers(self, pattern: Pattern) -> bool:
        return covers_all(self.alternatives, pattern)


@value
class Waiter:
    """A session in a queue, and what it waits for: alternatives, and the pattern that each belongs to."""

    ticket: int
    session: str
    agent: str
    mode: ClaimMode
    task: str
    since: int
    alive_until: int
    alternatives: tuple[Alternative, ...]
    patterns: tuple[str, ...]

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> list[Waiter]:
        """Return the waiters in these rows, of which each is one alternative of a pattern."""
        by_ticket: dict[int, list[Row]] = {}
        for row in rows:
            by_ticket.setdefault(row["ticket"], []).append(row)
        return [
            from_columns(
                cls,
                same[0],
                mode=ClaimMode(same[0]["mode"]),
                alternatives=tuple(_alternative(row) for row in same),
                patterns=tuple(row["pattern"] for row in same),
            )
            for same in by_ticket.values()
        ]

    @property
    def is_for_slot(self) -> bool:
        return self.alternatives[0].key.startswith("//")  # no path has such a key


@value
class Slot:
    """A slot that is held. `place` is the port or the name; empty for an amount.

    With `expires_at` it is in use until then, even if it was freed or its session has ended.
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
    def from_row(cls, row: Row) -> Slot:
        return cls(**row)

    @property
    def until(self) -> int:
        """When it becomes free if its session shows no further sign of life."""
        return self.seen_at + self.lease_ms if self.expires_at is None else self.expires_at

    def is_in_use(self, now: int) -> bool:
        """Return whether it counts as taken until its session is found dead or lapsed."""
        return self.ended_at is None if self.expires_at is None else self.expires_at > now

    def is_free(self, now: int) -> bool:
        """Return whether another session can take it, also from a session whose lease has ended."""
        return self.until <= now or not self.is_in_use(now)


def _alternative(row: Row) -> Alternative:
    return Alternative(key=row["key"], rest=row["rest"])


def _claim_end(row: Row) -> int:
    if row["ended_at"] is not None:
        return 0  # a claim ends with its session, whatever its own lease says
    return lease_end(row["granted_at"], row["seen_at"], row["ttl_ms"])


def lease_end(granted_at: int, seen_at: int, ttl_ms: int) -> int:
    """Return when a claim's lease ends if its session shows no further sign of life."""
    return max(granted_at, seen_at) + ttl_ms


def check_agent_name(name: str) -> str:
    """Return the name if it can name an agent.

    Raises:
        Malformed: it is empty, too long, or contains anything but letters, digits and `. _ @ -`.
    """
    if not name or len(name) > _LONGEST_NAME or name[0] in ".-" or not _NAME_CHARACTERS.issuperset(name):
        raise Malformed(
            f'"{name[:40]}" is not a valid name; use letters, digits and . _ @ -',
            code="BAD_NAME",
            hint=f"use {valid_name(name)}",
            name=name,
        )
    return name


def find_reserved_use(name: str) -> str:
    """Return what Landlane itself uses a name for: an id, its own actions or a worker; empty if for nothing.

    Ids of what can hold claims are reserved in both cases, because commands accept ids in both.
    """
    if is_record_id(name) or (name[:1] in "tlgvh" and is_record_id(name.upper())):
        return f"the id {name.upper()}"
    if name.lower() == OWN_NAME:
        return "Landlane itself"
    task = worker_task(name)
    return f"the worker that `landlane run` starts for {task}" if task else ""


def worker_task(name: str) -> str:
    """Return the task of the worker with this name, or of one below it; empty for any other name.

    Only `landlane run` joins under such a name.
    """
    agent, _, task = name.partition(".")[0].rpartition("-")
    return task if agent and task[:1] == "T" and is_record_id(task) else ""


def check_not_reserved(name: str) -> None:
    """Check that Landlane does not use a name itself.

    Raises:
        Malformed: it does.
    """
    use = find_reserved_use(name)
    if use:
        first = name.partition("-")[0]
        free = "ann" if find_reserved_use(first) else first
        raise Malformed(f"{name} is reserved for {use}", code="NAME_RESERVED", hint=f"landlane join {free}")


def valid_name(name: str) -> str:
    """Return a valid name that resembles an invalid one."""
    if not name.isascii():
        from unicodedata import combining, normalize  # noqa: PLC0415 - rarely needed, and slow to load

        name = "".join(letter for letter in normalize("NFKD", name) if not combining(letter))
    letters = "".join(letter if letter in _NAME_CHARACTERS else "-" for letter in name[:_LONGEST_NAME])
    return letters.strip("-.") or "ann"


def parse_credentials(text: str) -> Credentials:
    """Return the id and the secret in the value of `LANDLANE_SESSION`.

    Raises:
        Malformed: the text does not have the form `id:secret`.
    """
    session, colon, secret = text.partition(":")
    if not colon or not session.startswith("s-") or not secret:
        raise Malformed(
            "LANDLANE_SESSION is not of the form id:secret",
            code="BAD_SESSION",
            hint="use what `landlane join --json` answers: session.id, a colon, session.secret",
        )
    return Credentials(session=session, secret=secret)
