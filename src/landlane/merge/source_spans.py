"""Values with their positions in a text, so that unchanged parts can be copied as they are written."""

from __future__ import annotations

from typing import Any

from landlane.values import value


@value
class Node:
    """A value of a text from `start` to `end`; its members if it is a table, its items if it is a list."""

    value: Any
    start: int
    end: int
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()

    @property
    def part_starts(self) -> list[int]:
        """Where each member or item begins."""
        return [part.start for part in self.members or self.items]


@value
class Member:
    """A key of a table as it is written from `start` to `end`, and its value."""

    key: str
    start: int
    end: int
    node: Node


@value
class Source:
    """A text and its values."""

    text: str
    root: Node

    def at(self, node: Node) -> str:
        """Return a value as it is written."""
        return self.text[node.start : node.end]

    def indent_at(self, start: int) -> str:
        """Return the indentation of the line of a position."""
        line_start = self.text.rfind("\n", 0, start) + 1
        line = self.text[line_start:start]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def is_first_on_line(self, start: int) -> bool:
        """Return whether only blanks are before a position on its line."""
        return not self.text[self.text.rfind("\n", 0, start) + 1 : start].strip(" \t")

    @property
    def indent_unit(self) -> str:
        """The indentation of one level; empty if everything is on one line."""
        for start in self.root.part_starts:
            if self.is_first_on_line(start) and self.indent_at(start):
                return self.indent_at(start)[len(self.indent_at(self.root.start)) :] or "  "
        return "" if "\n" not in self.at(self.root) and self.root.value else "  "

    @property
    def colon(self) -> str:
        """The text between a key of JSON and its value."""
        first = next(iter(self.root.members), None)
        between = self.text[first.end : first.node.start] if first else ": "
        return between if not between.strip(" :") else ": "
