"""Write a merged TOML value into the target's text: lines change only where a value did.

Additions of the candidate are copied from its text, with their comments. The caller reads the result again
and compares the values, so mistakes here cannot corrupt a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landlane.merge.combine_order import weave, weave_names
from landlane.merge.model import CannotMerge
from landlane.merge.source_spans import Node, Source
from landlane.merge.toml_read import ROOT, Block, Document, Statement, find
from landlane.merge.value_tree import MISSING, is_list, is_same, is_table, path_text, token
from landlane.values import value

Lines = tuple[str, ...]


def write_toml(merged: dict[str, Any], base: Document, ours: Document, theirs: Document) -> list[str]:
    """Return the lines of the target with the merged values in them."""
    return _Editor(merged, ours, theirs).write(base)


class _Editor:
    def __init__(self, merged: dict[str, Any], ours: Document, theirs: Document) -> None:
        self.merged = merged
        self.ours = ours
        self.theirs = theirs
        # The remaining elements of each array of tables, found once.
        self.elements: dict[tuple[str, ...], set[str]] = {}
        self.our_lines = frozenset(ours.source.text.split("\n"))
        self.their_lines = frozenset(theirs.source.text.split("\n"))

    def write(self, base: Document) -> list[str]:
        sides = [{block.name: block for block in side.blocks} for side in (base, self.ours, self.theirs)]
        lines: list[str] = []
        was_new = False
        for name in weave(*(list(side) for side in sides)):
            here, there = sides[1].get(name), sides[2].get(name)
            written = self._write_block(here, there)
            if written is None:
                continue
            # Blank lines around a block are those of the target; a new block gets one on each side.
            if lines and (was_new or here is None):
                lines = [*_without_end(lines), "", *written]
            else:
                lines += written
            was_new = here is None
        return [*_without_end(lines), *_blank_end(self.ours.source.text)]

    def _write_block(self, ours: Block | None, theirs: Block | None) -> list[str] | None:
        block = ours or theirs
        assert block is not None
        kept = find(self.merged, block.path)
        if block.raw:
            if block.path not in self.elements:
                self.elements[block.path] = {token(item) for item in kept} if is_list(kept) else set()
            is_kept = block.name[2] in self.elements[block.path]
            return [*block.above, *block.raw, *block.below] if is_kept else None
        if not is_table(kept):
            return None
        statements = self._write_statements(ours, theirs, block)
        is_needless = ours is None and not statements and find(self.ours.value, block.path) is not MISSING
        if is_needless:
            return None
        header = [] if block.name == ROOT else [block.header]
        return [*block.above, *header, *statements, *block.below]

    def _write_statements(self, ours: Block | None, theirs: Block | None, block: Block) -> list[str]:
        here, there = _by_name(ours), _by_name(theirs)
        lines: list[str] = []
        # The base is not known here, so keys of only one side count as new: both orders are kept either way.
        for name in weave_names([key for key in here if key in there], list(here), list(there)):
            left, right = here.get(name), there.get(name)
            statement = left or right
            assert statement is not None
            path = (*block.path, *statement.path)
            found = find(self.merged, path)
            if left and found is MISSING:
                lines += self._orphans(left)
            elif left and is_same(found, left.node.value):
                lines += _lines_of(left, self.ours.source.at(left.node))
            elif left:
                text = self._write_value(found, left.node, right.node if right else None, path)
                lines += _lines_of(left, text)
            elif found is not MISSING and right and find(self.ours.value, path) is MISSING:
                above = tuple(line for line in _touching(right.above) if line not in self.our_lines)
                is_first = theirs is not None and ours is None
                written = _lines_of(right, self.theirs.source.at(right.node))
                lines += written if is_first else [*above, *written[len(right.above) :]]
        return lines

    def _orphans(self, statement: Statement) -> list[str]:
        """Return the comments above a removed key that the candidate has kept."""
        kept = [line for line in statement.above if not line.strip() or line in self.their_lines]
        return kept if any(line.strip() for line in kept) else []

    def _write_value(self, merged: Any, ours: Node, theirs: Node | None, path: tuple[str, ...]) -> str:
        if is_same(merged, ours.value):
            return self.ours.source.at(ours)
        if theirs and is_same(merged, theirs.value):
            return self.theirs.source.at(theirs)
        if theirs and is_list(merged) and is_list(ours.value):
            return self._write_list(merged, ours, theirs, path)
        if theirs and is_table(merged) and is_table(ours.value):
            return self._write_inline(merged, ours, theirs, path)
        raise CannotMerge(f"both sides wrote {path_text(path)} in different ways, which cannot be joined")

    def _write_inline(self, merged: dict[str, Any], ours: Node, theirs: Node, path: tuple[str, ...]) -> str:
        here = {member.key: member for member in ours.members}
        there = {member.key: member for member in theirs.members}
        parts: list[str] = []
        for key, found in merged.items():
            left, right = here.get(key), there.get(key)
            if left:
                name = self.ours.source.text[left.start : left.end]
                node = right.node if right else None
                parts.append(f"{name.strip()} = {self._write_value(found, left.node, node, (*path, key))}")
            elif right:
                name = self.theirs.source.text[right.start : right.end]
                parts.append(f"{name.strip()} = {self.theirs.source.at(right.node)}")
        return "{ " + ", ".join(parts) + " }" if parts else "{}"

    def _write_list(self, merged: list[Any], ours: Node, theirs: Node, path: tuple[str, ...]) -> str:
        left, right = _split_list(self.ours.source, ours), _split_list(self.theirs.source, theirs)
        here = dict(zip(map(token, ours.value), left.items, strict=True))
        there = dict(zip(map(token, theirs.value), right.items, strict=True))
        names = [token(item) for item in merged]
        if not all(name in here or name in there for name in names):
            raise CannotMerge(f"the list at {path_text(path)} cannot be joined")
        chosen = [here[name] if name in here else there[name] for name in names]
        if not left.is_long or not chosen:
            return "[" + ", ".join(item.text for item in chosen) + "]"
        lines = ["[" + left.opening]
        for at, item in enumerate(chosen):
            comma = "," if left.has_last_comma or at < len(chosen) - 1 else ""
            lines += [*item.above, left.indent + item.text + comma + item.after]
        return "\n".join([*lines, *left.closing]) + "]"


@value
class _Item:
    """An item of a list as it is written: the comments above it, its text, and what follows its comma."""

    above: Lines
    text: str
    after: str


@value
class _ListText:
    """A list as it is written; it is long when each item begins a line."""

    opening: str
    items: tuple[_Item, ...]
    closing: Lines
    indent: str
    is_long: bool
    has_last_comma: bool


def _split_list(source: Source, node: Node) -> _ListText:
    texts = [source.at(item) for item in node.items]
    if not texts or not all(source.is_first_on_line(item.start) for item in node.items):
        bare = tuple(_Item(above=(), text=text, after="") for text in texts)
        return _ListText(opening="", items=bare, closing=(), indent="", is_long=False, has_last_comma=False)
    edges = [node.start + 1, *(edge for item in node.items for edge in (item.start, item.end)), node.end - 1]
    gaps = [source.text[edges[at] : edges[at + 1]].split("\n") for at in range(0, len(edges), 2)]
    if any(not gap[0].lstrip().startswith(",") for gap in gaps[1:-1]):
        raise CannotMerge("a list has its commas where this merge does not expect them")
    has_last_comma = gaps[-1][0].lstrip().startswith(",")
    after = [gap[0].lstrip().removeprefix(",").rstrip() for gap in gaps[1:]]
    items = tuple(
        _Item(above=tuple(gap[1:-1]), text=text, after=end and " " * (end[0] != " ") + end)
        for gap, text, end in zip(gaps[:-1], texts, after, strict=True)
    )
    closing = tuple(gaps[-1][1:])
    indent = source.indent_at(node.items[0].start)
    # A bracket right behind the last item has no line of its own.
    return _ListText(
        opening=gaps[0][0].rstrip(),
        items=items,
        closing=closing,
        indent=indent,
        is_long=bool(closing),
        has_last_comma=has_last_comma,
    )


def _by_name(block: Block | None) -> dict[str, Statement]:
    return {"\0".join(statement.path): statement for statement in block.statements} if block else {}


def _lines_of(statement: Statement, text: str) -> list[str]:
    return [*statement.above, *(statement.before + text + statement.after).split("\n")]


def _touching(lines: Lines) -> Lines:
    """Return the comments after the last blank line."""
    blank = max((at + 1 for at, line in enumerate(lines) if not line.strip()), default=0)
    return lines[blank:]


def _without_end(lines: Sequence[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return list(lines[:end])


def _blank_end(text: str) -> list[str]:
    lines = text.removesuffix("\n").split("\n")
    return lines[len(_without_end(lines)) :]
