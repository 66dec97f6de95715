"""Colours and initials of those who hold something: the same for a name on every page."""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

COLOURS = 8


def initials(name: str) -> str:
    """Return two letters for a name; the number for `codex-T14`, so that workers differ."""
    head, _, rest = name.partition("-")
    if rest[:1] == "T" and rest[1:].isdecimal():
        return f"{head[:1]}{rest[1:]}"[:3].lower()
    return (head[:1] + (rest[:1] or head[1:2])).lower() if head else "?"


def colour_of(name: str) -> int:
    """Return the number of a colour, from 1 to 8."""
    return zlib.crc32(name.encode("utf-8", "replace")) % COLOURS + 1


class Colours(dict[str, int]):
    """Colours by name; a name that is not active any more gets one, too."""

    def __missing__(self, name: str) -> int:
        return colour_of(name)


def assign_colours(names: Iterable[str]) -> dict[str, int]:
    """Return a colour for each name: different ones for the first eight, as far as possible their own."""
    found: dict[str, int] = {}
    for name in sorted(set(names)):
        wanted = colour_of(name)
        used = set(found.values())
        free = [number for number in range(1, COLOURS + 1) if number not in used]
        found[name] = wanted if wanted in free or not free else free[0]
    return found
