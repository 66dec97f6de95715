"""Values and where they stand in a text, so that what did not change is copied as it is written."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class Node:
    """A value of a text from `start` to `end`; its members if it is a table, its items if it is a list."""

    value: Any
    start: int
    end: int
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()


@value
class Member:
    """A key of a table as it is written from `start` to `end`, and its value."""

    key: str
    start: int
    end: int
    node: Node


@value
class Source:
    """A text with plain line ends, and its values."""

    text: str
    root: Node

    def at(self, node: Node) -> str:
        """A value as it is written."""
        return self.text[node.start : node.end]

    def indent_at(self, start: int) -> str:
        """What stands before the first character of the line, if that is blank."""
        line_start = self.text.rfind("\n", 0, start) + 1
        line = self.text[line_start:start]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def is_first_on_line(self, start: int) -> bool:
        """Whether nothing but blanks stands before it on its line."""
        return not self.text[self.text.rfind("\n", 0, start) + 1 : start].strip(" \t")
