"""Add, replace or drop one part of a JSON text; every other byte stays as it is."""

from __future__ import annotations

import json
from typing import Any

from landlane.managed_files.text_block import newline_of
from landlane.merge.json_source import skip_blank
from landlane.merge.source_spans import Node, Source

_BLANK = " \t\r\n"


def add_part(source: Source, into: Node, key: str | None, wanted: Any) -> str:
    """Return the text with one more member at the end of a table, or one more item at the end of a list."""
    text, starts = source.text, into.part_starts
    if not starts:
        return _fill_empty(source, into, key, wanted)
    edge = _before_blank(text, into.end - 1)
    last_end = _ends(into)[-1]
    comma_at = skip_blank(text, last_end)
    has_comma = text[comma_at] == ","
    is_after_comment = edge > (comma_at + 1 if has_comma else last_end)
    has_own_line = source.is_first_on_line(starts[-1])
    if has_own_line or is_after_comment:
        indent = source.indent_at(starts[-1] if has_own_line else into.start)
        part = newline_of(text) + indent + _format_part(source, key, wanted, indent)
    else:
        space = " " if ": " in source.colon or text[into.start + 1] in _BLANK else ""
        part = space + _format_part(source, key, wanted, None)
    if has_comma:
        return text[:edge] + part + ("," if has_own_line else "") + text[edge:]
    return text[:last_end] + "," + text[last_end:edge] + part + text[edge:]


def _fill_empty(source: Source, into: Node, key: str | None, wanted: Any) -> str:
    """Put the first part between the brackets, after a comment that may stand there."""
    text, closing = source.text, into.end - 1
    edge = _before_blank(text, closing)
    unit = source.indent_unit
    if not unit:
        return text[:edge] + _format_part(source, key, wanted, None) + text[closing:]
    indent, newline = source.indent_at(into.start), newline_of(text)
    part = newline + indent + unit + _format_part(source, key, wanted, indent + unit)
    return text[:edge] + part + newline + indent + text[closing:]


def replace_part(source: Source, node: Node, wanted: Any) -> str:
    """Return the text with another value in place of this one."""
    text = source.text
    is_spread = "\n" in source.at(node) or source.is_first_on_line(node.start)
    indent = source.indent_at(node.start) if is_spread else None
    return text[: node.start] + _format_part(source, None, wanted, indent) + text[node.end :]


def drop_part(source: Source, out_of: Node, index: int) -> str:
    """Return the text without one member of a table or item of a list, its comma and its line."""
    text = source.text
    ends = _ends(out_of)
    start, end = out_of.part_starts[index], ends[index]
    after = skip_blank(text, end)
    if text[after] == "," and text[end:after].strip(_BLANK):
        text = text[:after] + text[after + 1 :]  # a comment stands before the comma, and stays
    elif text[after] == ",":
        end = after + 1
    elif index > 0:  # the last one: the comma before it goes, and the comments around that stay
        comma = skip_blank(text, ends[index - 1])
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    if len(ends) == 1:
        closing = out_of.end - 1 - (len(source.text) - len(text))
        return _drop_only_part(text, start, end, out_of.start, closing)
    before, behind = _before_blank(text, start), end
    while text[behind : behind + 1] in (" ", "\t"):
        behind += 1
    follower = text[behind : behind + 1]
    is_first_on_line = "\n" in text[before:start]
    # After a comment that runs to the end of its line, what follows must stay on a line of its own.
    may_close_up = "//" not in text[text.rfind("\n", 0, before) + 1 : before]
    closes_up = may_close_up and follower in ("}", "]") if is_first_on_line else index > 0
    return (
        text[:before] + text[end:] if follower in ("\r", "\n") or closes_up else text[:start] + text[behind:]
    )


def _drop_only_part(text: str, start: int, end: int, opening: int, closing: int) -> str:
    """Drop the only part; a comment beside it stays, and a bracket never ends up behind `//`."""
    before = _before_blank(text, start)
    rest = text[end:closing]
    if before == opening + 1 and not rest.strip(_BLANK):
        return text[:before] + text[closing:]
    return text[:before] + (rest if "\n" in rest else newline_of(text) + rest) + text[closing:]


def new_document(wanted: Any, newline: str = "\n") -> str:
    """Return the text of a file that holds just this."""
    return (json.dumps(wanted, indent=2, ensure_ascii=False) + "\n").replace("\n", newline)


def _format_part(source: Source, key: str | None, wanted: Any, indent: str | None) -> str:
    """Return a member or an item as text in the style of the source; without an indent, on one line."""
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + source.colon
    if indent is None:
        separators = (", " if source.colon.endswith(" ") else ",", source.colon)
        return name + json.dumps(wanted, ensure_ascii=False, separators=separators)
    unit = source.indent_unit or "  "
    text = json.dumps(wanted, ensure_ascii=False, indent=unit, separators=(",", source.colon))
    return name + text.replace("\n", newline_of(source.text) + indent)


def _ends(node: Node) -> list[int]:
    return [member.node.end for member in node.members] or [item.end for item in node.items]


def _before_blank(text: str, at: int) -> int:
    """Return the position after the last character before here that is not blank."""
    return len(text[:at].rstrip(_BLANK))
