"""Keys and values of TOML, and where each of them begins and ends in a text that is known to be valid."""

from __future__ import annotations

import tomllib

from landlane.merge.source_spans import Member, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Path = tuple[str, ...]

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class ValueReader:
    """Reads on from `at`, which it moves."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read_line(self) -> str:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        line = self.text[self.at : end]
        self.at = end + 1
        return line

    def skip_blank(self, blanks: str = " \t") -> None:
        while self.at < len(self.text) and self.text[self.at] in blanks:
            self.at += 1

    def read_key(self) -> Path:
        parts: list[str] = []
        while True:
            self.skip_blank()
            start = self.at
            if self.text[start] in "\"'":
                self._pass_string()
                parts.append(_value_of(self.text[start : self.at]))
            else:
                while self.text[self.at] in _BARE:
                    self.at += 1
                parts.append(self.text[start : self.at])
            self.skip_blank()
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def read_value(self) -> Node:
        start = self.at
        members: list[Member] = []
        items: list[Node] = []
        here = self.text[start]
        if here in "\"'":
            self._pass_string()
        elif here == "[":
            self.at += 1
            while self._pass_to_next() != "]":
                items.append(self.read_value())
            self.at += 1
        elif here == "{":
            self.at += 1
            while self._pass_to_next() != "}":
                key_start = self.at
                key = self.read_key()
                key_end = self.at
                self.at = self.text.index("=", self.at) + 1
                self.skip_blank()
                node = self.read_value()
                members.append(Member(key=".".join(key), start=key_start, end=key_end, node=node))
            self.at += 1
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1
            self.at = start + len(self.text[start : self.at].rstrip())
        found = _value_of(self.text[start : self.at])
        return Node(value=found, start=start, end=self.at, members=tuple(members), items=tuple(items))

    def _pass_to_next(self) -> str:
        """Go over blanks, commas and comments to the next item or the end of a list."""
        while True:
            self.skip_blank(" \t\n,")
            if self.text[self.at] != "#":
                return self.text[self.at]
            self.read_line()

    def _pass_string(self) -> None:
        quote = self.text[self.at]
        is_long = self.text.startswith(quote * 3, self.at)
        end = quote * 3 if is_long else quote
        self.at += len(end)
        while not self.text.startswith(end, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(end)
        # A long string may end in one or two quotes of its own.
        while is_long and self.text.startswith(quote, self.at):
            self.at += 1


def _value_of(raw: str) -> Any:
    return tomllib.loads(f"x={raw}")["x"]
