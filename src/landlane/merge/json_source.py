"""Read JSON, with or without comments, as values with their positions in the text."""

from __future__ import annotations

import json
from typing import NoReturn

from landlane.merge.model import quote
from landlane.merge.source_spans import Member, Node, Source
from landlane.merge.value_tree import MOST_NESTING, Number

_BLANK = " \t\n\r"
_BYTE_ORDER_MARK = "\ufeff"

# Extensions of JSON that settings files may use.
COMMENT, COMMA, MARK = "a comment", "a comma behind the last entry", "a byte order mark"


class NotJson(Exception):
    """A text that is not valid JSON: the line, and what is wrong there."""


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


# With the numbers as they are written, so that 1.0 stays 1.0.
_EXACT = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_refuse_constant)
_LENIENT = json.JSONDecoder(strict=False)


def read_json(text: str, *, has_comments: bool = False) -> Source:
    """Read a JSON text; numbers keep their spelling, unless it may hold comments and trailing commas.

    Raises:
        NotJson: it is not JSON, has a key twice, or is nested too deep.
    """
    reader = _JsonReader(text, has_comments)
    root = reader.read(reader.skip(0), 0)
    end = reader.skip(root.end)
    if end < len(text):
        reader.refuse(end, "something stands after the end")
    return Source(text=text, root=root)


def skip_blank(text: str, at: int) -> int:
    """Return the first position from here on that is neither blank nor part of a comment.

    Raises:
        NotJson: a comment has no end.
    """
    while at < len(text):
        if text[at] in _BLANK + _BYTE_ORDER_MARK:
            at += 1
        elif text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise NotJson(f"line {_line_of(text, at)}: a comment has no end")
            at = end + 2
        else:
            break
    return at


def find_extras(text: str) -> dict[str, int]:
    """Return the extensions of JSON that a text uses, each with the first line that does."""
    extras = {MARK: 1} if text.startswith(_BYTE_ORDER_MARK) else {}
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == '"':
            at = _end_of_string(text, at)
            continue
        end = skip_blank(text, at)
        if end > at and text[at:end].strip(_BLANK + _BYTE_ORDER_MARK):
            start = min(found for mark in ("//", "/*") if (found := text.find(mark, at)) >= 0)
            extras.setdefault(COMMENT, _line_of(text, start))
        if letter == "," and text[skip_blank(text, at + 1) :][:1] in ("}", "]"):
            extras.setdefault(COMMA, _line_of(text, at))
        at = max(end, at + 1)
    return extras


def _end_of_string(text: str, at: int) -> int:
    at += 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _JsonReader:
    def __init__(self, text: str, has_comments: bool) -> None:
        self._text = text
        self._has_comments = has_comments
        self._scalars = _LENIENT if has_comments else _EXACT

    def refuse(self, at: int, why: str) -> NoReturn:
        raise NotJson(f"line {_line_of(self._text, at)}: {why}")

    def skip(self, at: int) -> int:
        if self._has_comments:
            return skip_blank(self._text, at)
        while at < len(self._text) and self._text[at] in _BLANK:
            at += 1
        return at

    def read(self, at: int, depth: int) -> Node:
        if depth > MOST_NESTING:
            self.refuse(at, f"nested deeper than {MOST_NESTING} levels")
        opening = self._text[at : at + 1]
        if opening == "{":
            return self._read_table(at, depth)
        if opening == "[":
            return self._read_list(at, depth)
        try:
            found, end = self._scalars.raw_decode(self._text, at)
        except (json.JSONDecodeError, RecursionError):
            self.refuse(at, f"expected a value, found {quote(self._text[at : at + 20]) or 'the end'!r}")
        return Node(value=found, start=at, end=end)

    def _read_table(self, start: int, depth: int) -> Node:
        members: dict[str, Member] = {}
        at = self.skip(start + 1)
        while self._has_part(at, "}", is_first=not members):
            if self._text[at : at + 1] != '"':
                self.refuse(at, "expected a key in double quotes")
            key = self.read(at, depth)
            if key.value in members:
                self.refuse(at, f"the key {quote(key.value)!r} stands twice")
            colon = self.skip(key.end)
            if self._text[colon : colon + 1] != ":":
                self.refuse(colon, f"expected : after the key {quote(key.value)!r}")
            node = self.read(self.skip(colon + 1), depth + 1)
            members[key.value] = Member(key=key.value, start=at, end=key.end, node=node)
            at, is_last = self._pass_comma(node.end, "}")
            if is_last:
                break
        values = {key: member.node.value for key, member in members.items()}
        return Node(value=values, start=start, end=at + 1, members=tuple(members.values()))

    def _read_list(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        at = self.skip(start + 1)
        while self._has_part(at, "]", is_first=not items):
            items.append(self.read(at, depth + 1))
            at, is_last = self._pass_comma(items[-1].end, "]")
            if is_last:
                break
        return Node(value=[item.value for item in items], start=start, end=at + 1, items=tuple(items))

    def _has_part(self, at: int, closing: str, *, is_first: bool) -> bool:
        """Return whether another part must follow here; only some files may end with a comma."""
        may_close = is_first or self._has_comments
        return not (may_close and self._text[at : at + 1] == closing)

    def _pass_comma(self, at: int, closing: str) -> tuple[int, bool]:
        """Return where the next part begins, or the closing bracket and that it is the end."""
        at = self.skip(at)
        if self._text[at : at + 1] == ",":
            return self.skip(at + 1), False
        if self._text[at : at + 1] != closing:
            self.refuse(at, f"expected , or {closing}")
        return at, True
