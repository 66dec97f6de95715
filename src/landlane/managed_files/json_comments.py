"""JSON as people write their settings, with comments and trailing commas: each value and where it stands."""

from __future__ import annotations

import json

from landlane.merge.result import shown
from landlane.merge.source_spans import Member, Node, Source
from landlane.merge.value_tree import MOST_NESTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_BLANK = " \t\n\r\ufeff"
_SCALARS = json.JSONDecoder(strict=False)


class NotJson(Exception):
    """A text that cannot be read as JSON, in words: the line, and what is wrong there."""


def read_commented(text: str) -> Source:
    """The values of a JSON text that may hold comments and trailing commas.

    Raises:
        NotJson: it cannot be read, or a key stands twice.
    """
    reader = _Reader(text)
    root = reader.read(reader.skip(0), 0)
    end = reader.skip(root.end)
    if end < len(text):
        reader.refuse(end, "something stands after the end")
    return Source(text=text, root=root)


def skip_blank(text: str, at: int) -> int:
    """The first place from here on that is neither blank nor part of a comment.

    Raises:
        NotJson: a comment has no end.
    """
    while at < len(text):
        if text[at] in _BLANK:
            at += 1
        elif text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise NotJson(f"line {text.count(chr(10), 0, at) + 1}: a comment has no end")
            at = end + 2
        else:
            break
    return at


COMMENT, COMMA, MARK = "a comment", "a comma behind the last entry", "a byte order mark"


def extras_in(text: str) -> dict[str, int]:
    """What a text has that plain JSON has not, and the line where each first stands."""
    found = {MARK: 1} if text.startswith("\ufeff") else {}
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == '"':
            at = _behind_string(text, at)
            continue
        behind = skip_blank(text, at)
        if behind > at and text[at:behind].strip(_BLANK):
            start = min(place for mark in ("//", "/*") if (place := text.find(mark, at)) >= 0)
            found.setdefault(COMMENT, text.count("\n", 0, start) + 1)
        if letter == "," and text[skip_blank(text, at + 1) :][:1] in ("}", "]"):
            found.setdefault(COMMA, text.count("\n", 0, at) + 1)
        at = max(behind, at + 1)
    return found


def _behind_string(text: str, at: int) -> int:
    at += 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def refuse(self, at: int, why: str) -> NoReturn:
        raise NotJson(f"line {self.text.count(chr(10), 0, at) + 1}: {why}")

    def skip(self, at: int) -> int:
        return skip_blank(self.text, at)

    def read(self, at: int, depth: int) -> Node:
        if depth > MOST_NESTING:
            self.refuse(at, f"nested deeper than {MOST_NESTING} levels")
        opening = self.text[at : at + 1]
        if opening == "{":
            return self._read_table(at, depth)
        if opening == "[":
            return self._read_list(at, depth)
        try:
            found, end = _SCALARS.raw_decode(self.text, at)
        except (json.JSONDecodeError, RecursionError):
            self.refuse(at, f"expected a value, found {shown(self.text[at : at + 20]) or 'the end'!r}")
        return Node(value=found, start=at, end=end)

    def _read_table(self, start: int, depth: int) -> Node:
        members: dict[str, Member] = {}
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] != '"':
                self.refuse(at, "expected a key in double quotes")
            key = self.read(at, depth)
            if key.value in members:
                self.refuse(at, f"the key {shown(key.value)!r} stands twice")
            colon = self.skip(key.end)
            if self.text[colon : colon + 1] != ":":
                self.refuse(colon, f"expected : after the key {shown(key.value)!r}")
            node = self.read(self.skip(colon + 1), depth + 1)
            members[key.value] = Member(key=key.value, start=at, end=key.end, node=node)
            at = self._next(node.end, "}")
        found = {key: member.node.value for key, member in members.items()}
        return Node(value=found, start=start, end=at + 1, members=tuple(members.values()))

    def _read_list(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "]":
            items.append(self.read(at, depth + 1))
            at = self._next(items[-1].end, "]")
        return Node(value=[item.value for item in items], start=start, end=at + 1, items=tuple(items))

    def _next(self, at: int, closing: str) -> int:
        """Where the next part begins, or the bracket that ends them."""
        at = self.skip(at)
        if self.text[at : at + 1] == ",":
            return self.skip(at + 1)
        if self.text[at : at + 1] != closing:
            self.refuse(at, f"expected , or {closing}")
        return at
