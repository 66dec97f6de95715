"""Requests, grants and refusals of claims as values; which claims conflict, and deadlock detection.

A claim lives as long as its session shows signs of life: its lease counts from the later of its own grant
and the session's last sign of life, so that one small write renews everything a session holds.
"""

from __future__ import annotations

from landlane.clock import duration_text
from landlane.errors import Malformed
from landlane.patterns.pattern import Alternative, Pattern, PatternKind, alternatives_overlap
from landlane.sessions.model import Claim, ClaimMode, SessionKind, Waiter
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from landlane.values import Row

    Identity = frozenset[Alternative]  # what makes two spellings the same pattern


MOST_PATTERNS = 1000
LONGEST_NOTE = 1000
SHORTEST_TTL_MS = 1000


@value
class Request:
    """What a session asks for in one call."""

    patterns: tuple[Pattern, ...]
    mode: ClaimMode
    ttl_ms: int
    task: str = ""
    note: str = ""
    is_partial: bool = False
    may_shorten: bool = False  # the caller chose the lease, so it also replaces a longer one


@value
class LostClaim:
    """A claim that an agent lost because its lease ended, and has not taken again."""

    agent: str
    pattern: str
    kind: PatternKind
    mode: ClaimMode
    ttl_ms: int
    token: int
    ended_at: int

    @classmethod
    def from_row(cls, row: Row) -> LostClaim:
        columns: dict[str, Any] = {**row, "kind": PatternKind(row["kind"]), "mode": ClaimMode(row["mode"])}
        return cls(**columns)


@value
class SavedWork:
    """What a former holder left on claimed paths: the id of its rescue, empty if that failed, and a note."""

    rescue: str
    note: str


@value
class Taken:
    """The claims that were granted; with `is_partial`, also what was refused."""

    granted: tuple[Claim, ...]
    refused: tuple[Refusal, ...] = ()
    saved: SavedWork | None = None
    waited_ms: int = 0


@value
class Holding:
    """A live claim with what others need to know about it: its task's title, who holds it, who waits.

    `kind` is not that of an agent or person where a session holds the claim for work that waits.
    """

    claim: Claim
    title: str = ""
    kind: SessionKind = SessionKind.AGENT
    waiting: tuple[str, ...] = ()  # agents, in the order in which they get it


@value
class Refusal:
    """Why one pattern was not granted: who holds or waits for it, until when, and what to do instead."""

    pattern: str
    holder: str
    session: str
    held: str
    mode: ClaimMode
    task: str
    note: str
    since: int
    until: int
    is_waiting: bool
    hint: str
    holders: tuple[Holding, ...] = ()  # every claim in the way; the fields above are about the first
    waiting: tuple[str, ...] = ()  # the agents ahead of the caller, in their order
    position: int = 1  # the caller's place in line, if it waits


@value
class Refused:
    """Nothing was granted. `code` says whether it is held, the wait was too short, or would never end."""

    refused: tuple[Refusal, ...]
    code: str = "CLAIM_HELD"
    cycle: tuple[str, ...] = ()
    free: tuple[str, ...] = ()  # the patterns of the request that no other session holds
    waited_ms: int = 0


def find_conflict(wanted: Pattern, mode: ClaimMode, other: Claim | Waiter) -> Alternative | None:
    """Return the first alternative that another session holds or waits for and that overlaps this pattern."""
    if not mode.conflicts_with(other.mode):
        return None
    return next(
        (
            held
            for held in other.alternatives
            if any(alternatives_overlap(mine, held) for mine in wanted.alternatives)
        ),
        None,
    )


def check_request(request: Request, *, max_ttl_ms: int) -> Request:
    """Return the request if it is valid.

    Raises:
        Malformed: there is no pattern or too many, or the lease is too short or too long.
    """
    if not request.patterns:
        raise Malformed(
            "no pattern to claim", code="NO_PATTERN", hint="name a path, as in: landlane claim src/api.py"
        )
    check_pattern_count(len(request.patterns))
    check_ttl(request.ttl_ms, max_ttl_ms)
    return request


def check_can_wait(request: Request) -> None:
    """Refuse to wait for part of a set.

    Raises:
        Malformed: the request is partial.
    """
    if request.is_partial:
        raise Malformed(
            "--partial takes what is free now; there is nothing to wait for",
            code="PARTIAL_WAIT",
            hint="leave out --partial or --wait",
        )


def check_pattern_count(count: int) -> None:
    """Refuse more patterns in one call than one transaction should check."""
    if count > MOST_PATTERNS:
        raise Malformed(
            f"{count:,} patterns in one call; {MOST_PATTERNS:,} are the most",
            code="TOO_MANY_PATTERNS",
            hint="claim a folder or a glob that covers them, such as src/**",
        )


def check_ttl(ttl_ms: int, max_ttl_ms: int) -> None:
    """Refuse a lease that is too short or too long."""
    if not SHORTEST_TTL_MS <= ttl_ms <= max_ttl_ms:
        raise Malformed(
            f"a lease of {duration_text(ttl_ms) if ttl_ms > 0 else 'nothing'} is out of range",
            code="TTL_OUT_OF_RANGE",
            hint=f"ask for 1s to {duration_text(max_ttl_ms)}; any sign of life renews it, so short is fine",
        )


def find_cycle(start: str, blockers_of: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """Return the cycle of sessions that wait for each other through `start`, if there is one."""
    came_from: dict[str, str] = {}
    pending = [start]
    while pending:  # not recursive, because chains can be long
        waiter = pending.pop()
        for blocker in blockers_of(waiter):
            if blocker == start:
                cycle = [start, waiter]
                while cycle[-1] != start:
                    cycle.append(came_from[cycle[-1]])
                return tuple(reversed(cycle))
            if blocker not in came_from:
                came_from[blocker] = waiter
                pending.append(blocker)
    return ()
