"""Claims as values: requests, grants, refusals; which claims conflict, and deadlock detection.

A claim lives as long as its session shows signs of life: its lease counts from the later of its own grant
and the session's last sign of life, so that one small write renews everything a session holds.
"""

from __future__ import annotations

from landlane.clock import duration_text
from landlane.errors import Malformed
from landlane.patterns.pattern import Alternative, Pattern, alternatives_overlap
from landlane.sessions.model import Claim, Waiter
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from landlane.claims.refusal_model import Refusal
    from landlane.patterns.pattern import Kind
    from landlane.values import Row

    Identity = frozenset[Alternative]


EXCLUSIVE = "exclusive"
SHARED = "shared"
MOST_PATTERNS = 1000
LONGEST_NOTE = 1000
SHORTEST_TTL_MS = 1000


@value
class Request:
    """What a session asks for in one go."""

    patterns: tuple[Pattern, ...]
    mode: str
    ttl_ms: int
    task: str = ""
    note: str = ""
    is_partial: bool = False


@value
class LostClaim:
    """A claim that an agent lost because its lease ended, and has not taken again."""

    agent: str
    pattern: str
    kind: Kind
    mode: str
    ttl_ms: int
    token: int
    ended_at: int

    @classmethod
    def from_row(cls, row: Row) -> LostClaim:
        return cls(**row)


@value
class Taken:
    """All that was asked for (or with `partial`, some of it) is granted."""

    granted: tuple[Claim, ...]
    refused: tuple[Refusal, ...] = ()


def modes_collide(one: str, other: str) -> bool:
    """Whether two overlapping claims of two sessions exclude each other."""
    return not (one == SHARED and other == SHARED)


def find_conflict(wanted: Pattern, mode: str, other: Claim | Waiter) -> Alternative | None:
    """Return the first alternative that another session holds or waits for and that overlaps this pattern."""
    if not modes_collide(mode, other.mode):
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
    """The request itself when it can be judged.

    Raises:
        Malformed: there is no pattern or too many, or the lease is no sensible length of time.
    """
    if not request.patterns:
        raise Malformed(
            "no pattern to claim", code="NO_PATTERN", hint="name a path, as in: landlane claim src/api.py"
        )
    check_pattern_count(len(request.patterns))
    check_ttl(request.ttl_ms, max_ttl_ms)
    return request


def check_pattern_count(count: int) -> None:
    """Refuse more patterns in one call than one transaction should judge."""
    if count > MOST_PATTERNS:
        raise Malformed(
            f"{count:,} patterns in one call; {MOST_PATTERNS:,} are the most",
            code="TOO_MANY_PATTERNS",
            hint="claim a folder or a glob that covers them, such as src/**",
        )


def check_ttl(ttl_ms: int, max_ttl_ms: int) -> None:
    """Refuse a lease that is over at once or practically never."""
    if not SHORTEST_TTL_MS <= ttl_ms <= max_ttl_ms:
        raise Malformed(
            f"a lease of {duration_text(ttl_ms) if ttl_ms > 0 else 'nothing'} is out of range",
            code="TTL_OUT_OF_RANGE",
            hint=f"ask for 1s to {duration_text(max_ttl_ms)}; any sign of life renews it, so short is fine",
        )


def find_cycle(start: str, blockers_of: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """The ring of those that wait for each other through `start`, or nothing."""
    came_from: dict[str, str] = {}
    to_see = [start]
    while to_see:  # no recursion: chains can be long
        waiter = to_see.pop()
        for blocker in blockers_of(waiter):
            if blocker == start:
                return _trail(came_from, waiter, start)
            if blocker not in came_from:
                came_from[blocker] = waiter
                to_see.append(blocker)
    return ()


def _trail(came_from: dict[str, str], last: str, start: str) -> tuple[str, ...]:
    trail = [start, last]
    while trail[-1] != start:
        trail.append(came_from[trail[-1]])
    return tuple(reversed(trail)) if last != start else (start, start)
