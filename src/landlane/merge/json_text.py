"""Write a merged JSON value.

Each part that a side already has is copied as that side wrote it. Only tables and lists with parts of both
sides are written again, in the style that the target uses at that place.
"""

from __future__ import annotations

import json
from typing import Any

from landlane.merge.source_spans import Node, Source
from landlane.merge.value_tree import Number, is_list, is_same, is_table, token


def write_json(merged: Any, ours: Source, theirs: Source) -> str:
    """Return the text of the target with the merged value in place of its own."""
    writer = _Writer(ours, theirs)
    text = writer.write(merged, ours.root, theirs.root, "")
    return ours.text[: ours.root.start] + text + ours.text[ours.root.end :]


class _Writer:
    def __init__(self, ours: Source, theirs: Source) -> None:
        self.ours = ours
        self.theirs = theirs
        self.unit = ours.indent_unit
        self.can_copy = self.unit == theirs.indent_unit
        self.colon = ours.colon

    def write(self, merged: Any, ours: Node | None, theirs: Node | None, indent: str) -> str:
        """Return a value as text; `indent` is that of the line it begins on."""
        if ours and is_same(merged, ours.value):
            return self.ours.at(ours)
        if theirs and is_same(merged, theirs.value):
            return self._copy(theirs, indent)
        assert ours is not None, "what only one side has is that side's"
        if is_table(merged):
            return self._write_table(merged, ours, theirs, indent)
        return self._write_list(merged, ours, theirs, indent)

    def _copy(self, theirs: Node, indent: str) -> str:
        """Return what the candidate wrote, unchanged if both indent alike."""
        text = self.theirs.at(theirs)
        if "\n" not in text or (self.can_copy and self.theirs.indent_at(theirs.start) == indent):
            return text
        return _plain(theirs.value, self.unit, indent, self.colon)

    def _write_table(self, merged: dict[str, Any], ours: Node, theirs: Node | None, indent: str) -> str:
        here = {member.key: member for member in ours.members}
        there = {member.key: member for member in theirs.members} if theirs else {}
        inner = self._inner_indent(ours, indent)
        parts: list[str] = []
        for key, found in merged.items():
            left, right = here.get(key), there.get(key)
            name = json.dumps(key, ensure_ascii=False)
            if left or right:
                source, member = (self.ours, left) if left else (self.theirs, right)
                assert member is not None
                name = source.text[member.start : member.end]
            nodes = (left.node if left else None), (right.node if right else None)
            parts.append(name + self.colon + self.write(found, *nodes, inner or indent))
        return self._join("{}", parts, ours, inner, indent)

    def _write_list(self, merged: list[Any], ours: Node, theirs: Node | None, indent: str) -> str:
        here = {token(item.value): item for item in ours.items}
        there = {token(item.value): item for item in theirs.items} if theirs else {}
        inner = self._inner_indent(ours, indent)
        parts = [
            self.write(item, here.get(token(item)), there.get(token(item)), inner or indent)
            for item in merged
        ]
        return self._join("[]", parts, ours, inner, indent)

    def _inner_indent(self, ours: Node, indent: str) -> str | None:
        """Return how the parts of this value are indented; None if they are on the same line."""
        starts = ours.part_starts
        if starts and self.ours.is_first_on_line(starts[0]):
            return self.ours.indent_at(starts[0])
        return None if starts or not self.unit else indent + self.unit

    def _join(self, brackets: str, parts: list[str], ours: Node, inner: str | None, indent: str) -> str:
        if not parts:
            return brackets
        if inner is not None:
            lines = ",\n".join(inner + part for part in parts)
            return f"{brackets[0]}\n{lines}\n{indent}{brackets[1]}"
        text = self.ours.at(ours)
        pad = " " if text[1:2] == " " and len(text) > 2 else ""
        comma = ", " if self.colon.endswith(" ") else ","
        return brackets[0] + pad + comma.join(parts) + pad + brackets[1]


def _plain(item: Any, unit: str, indent: str, colon: str) -> str:
    """Return a value in a plain layout."""
    inner = indent + unit
    if is_table(item) and item:
        parts = [
            json.dumps(key, ensure_ascii=False) + colon + _plain(found, unit, inner, colon)
            for key, found in item.items()
        ]
    elif is_list(item) and item:
        parts = [_plain(found, unit, inner, colon) for found in item]
    else:
        return str(item) if isinstance(item, Number) else json.dumps(item, ensure_ascii=False)
    opening, closing = "{}" if is_table(item) else "[]"
    if not unit:
        return opening + ",".join(parts) + closing
    return opening + "\n" + ",\n".join(inner + part for part in parts) + "\n" + indent + closing
