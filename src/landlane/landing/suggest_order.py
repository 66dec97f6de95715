"""In which order branches should land so that as few as possible meet a conflict."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST_EXACT = 8  # so many are tried in every combination; of more, the least troublesome come first


def best_order(
    names: Sequence[str], conflicts: Iterable[tuple[str, str]], last: Iterable[str] = ()
) -> list[str]:
    """All names: first those that can land one after the other, then those that conflict with one of them.

    `last` are those that conflict with what is there already. Otherwise the given order stays as it is.
    """
    against: dict[str, set[str]] = {name: set() for name in names}
    for one, other in conflicts:
        against[one].add(other)
        against[other].add(one)
    late = set(last)
    free = [name for name in names if name not in late]
    landing = _largest(free, against) if len(free) <= MOST_EXACT else _easiest(free, against)
    first = [name for name in free if name in landing]
    rest = [name for name in free if name not in landing]
    behind = sorted(rest, key=lambda name: len(against[name] & landing))
    return [*first, *behind, *(name for name in names if name in late)]


def _largest(names: Sequence[str], against: Mapping[str, set[str]]) -> set[str]:
    """The most names of which no two conflict; of several such sets the one that comes first in order."""
    best: list[str] = []
    for choice in range((1 << len(names)) - 1, 0, -1):
        # The first name is the highest bit, so that a set with earlier names is met earlier.
        chosen = [name for index, name in enumerate(reversed(names)) if choice >> index & 1][::-1]
        if len(chosen) > len(best) and not any(against[name] & set(chosen) for name in chosen):
            best = chosen
    return set(best)


def _easiest(names: Sequence[str], against: Mapping[str, set[str]]) -> set[str]:
    """Again and again the name that stands in the way of the fewest others that are left."""
    left: list[str] = list(names)
    chosen: set[str] = set()
    while left:
        others = set(left)
        name = min(left, key=lambda one: len(against[one] & others))
        chosen.add(name)
        left = [one for one in left if one != name and one not in against[name]]
    return chosen
