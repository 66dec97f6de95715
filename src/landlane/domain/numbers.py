"""Numbers: distinct and growing within a kind, and where in a path they stand once they are used."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

LONGEST_PURPOSE = 200
_MOST_DIGITS = 15  # a number is below 2^53, as every token is
_LONGEST_KIND = 64
_KIND_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_PLACE = "{n}"

USED, PENDING, ABANDONED, GIVEN = "used", "pending", "abandoned", "given"


@value
class NumbersFound:
    """Which numbers stand in a branch, and which only in a working tree."""

    in_branches: frozenset[int] = frozenset()
    in_trees: frozenset[int] = frozenset()

    @property
    def highest(self) -> int:
        """The highest of all; 0 when there is none."""
        return max(self.in_branches | self.in_trees, default=0)


@value
class Number:
    """A number that was given out. `text` has the width, and `path` the place, that the settings say."""

    kind: str
    number: int
    text: str
    path: str
    agent: str
    session: str
    purpose: str
    at: int
    state: str = PENDING


@value
class NumberKind:
    """What the settings say of a kind: where its numbers stand, and how wide they are written."""

    name: str
    path: str = ""
    width: int = 0

    def text_of(self, number: int) -> str:
        """The number as it is written."""
        return str(number).zfill(self.width)

    def path_of(self, number: int) -> str:
        """Where the number will stand; empty when nobody said."""
        return self.path.replace(_PLACE, self.text_of(number))


def number_kind(settings: Sequence[tuple[str, dict[str, Any]]], kind: str) -> NumberKind:
    """The kind of this name; one that the settings do not know just counts.

    Raises:
        Malformed: the text cannot name a kind.
    """
    is_word = bool(kind) and len(kind) <= _LONGEST_KIND and _KIND_CHARACTERS.issuperset(kind)
    if not is_word or kind == "list":
        raise Malformed(
            f"{kind[:40]!r} cannot name a kind of numbers",
            code="BAD_KIND",
            hint=f"use 1 to {_LONGEST_KIND} small letters, digits, _ or -, as in: landlane number migration",
        )
    said = dict(settings).get(kind, {})
    return NumberKind(name=kind, path=said.get("path", ""), width=said.get("width", 0))


def state_of(number: int, kind: NumberKind, found: NumbersFound, *, is_over: bool) -> str:
    """How far a number is: it stands in a branch, may still come, or its session ended without using it."""
    if not kind.path:
        return GIVEN  # nobody said where to look
    if number in found.in_branches:
        return USED
    return ABANDONED if is_over and number not in found.in_trees else PENDING


def folder_of(path: str) -> str:
    """The folder that everything a path with `{n}` can mean lies in; empty for the root."""
    plain = path[: min(at for mark in (_PLACE, "*", "?") if (at := path.find(mark)) >= 0)]
    return plain.rpartition("/")[0]


def reader_for(path: str) -> Callable[[str], int | None]:
    """What tells the number in a file's path, if the file is one of these."""
    import re  # noqa: PLC0415 - dear, and only who asks for a number needs it

    form = re.compile("".join(_translate(path)))

    def read(name: str) -> int | None:
        match = form.fullmatch(name)
        return int(match[1]) if match and len(match[1]) <= _MOST_DIGITS else None

    return read


def _translate(path: str) -> list[str]:
    import re  # noqa: PLC0415

    parts: list[str] = []
    at = 0
    marks = ((_PLACE, "([0-9]+)"), ("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))
    while at < len(path):
        for mark, meant in marks:
            if path.startswith(mark, at):
                parts.append(meant)
                at += len(mark)
                break
        else:
            parts.append(re.escape(path[at]))
            at += 1
    return parts
