"""Which keys a transaction locks before it checks overlaps."""

from __future__ import annotations

from landlane.patterns.pattern import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def areas_of(patterns: Sequence[Pattern]) -> dict[str, bool]:
    """The places to lock before judging these patterns: key → whether alone.

    Everything that can overlap a pattern lies on the way from the root to its key, or below it. Locking the
    way shared and the key itself alone makes two requests wait for each other only if they could overlap.
    """
    from landlane.patterns.pattern import ancestors  # noqa: PLC0415 - only stores with such locks ask

    areas: dict[str, bool] = {}
    for pattern in patterns:
        for branch in pattern.alternatives:
            for key in ancestors(branch.key):
                areas.setdefault(key, False)
            areas[branch.key] = True
    return areas
