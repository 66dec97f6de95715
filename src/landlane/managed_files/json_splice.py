"""Putting one part into a JSON text, replacing it, or taking it out; every other byte stays as it is."""

from __future__ import annotations

import json

from landlane.merge.json_source import skip_blank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.merge.source_spans import Member, Node, Source

_BLANK = " \t\r\n"


def newline_of(text: str) -> str:
    """How the lines of a text end; as the first of them does."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def add_part(source: Source, into: Node, key: str | None, wanted: Any) -> str:
    """The text with one more member at the end of a table, or one more item at the end of a list."""
    text = source.text
    parts = _starts(into)
    closing = into.end - 1
    edge = _back_over_blank(text, closing)
    if not parts:
        return _fill_empty(source, into, key, wanted)
    last_end = _ends(into)[-1]
    comma_at = skip_blank(text, last_end)
    has_comma = text[comma_at] == ","
    after_comment = edge > (comma_at + 1 if has_comma else last_end)
    own_line = source.is_first_on_line(parts[-1])
    indent = source.indent_at(parts[-1]) if own_line else ""
    if own_line:
        written = newline_of(text) + indent + _written(source, key, wanted, indent)
    elif after_comment:
        line = source.indent_at(into.start)
        written = newline_of(text) + line + _written(source, key, wanted, line)
    else:
        space = " " if ": " in _colon(source) or text[into.start + 1] in _BLANK else ""
        written = space + _written(source, key, wanted, None)
    comma = "," if has_comma and own_line else ""
    if has_comma:
        return text[:edge] + written + comma + text[edge:]
    return text[:last_end] + "," + text[last_end:edge] + written + text[edge:]


def _fill_empty(source: Source, into: Node, key: str | None, wanted: Any) -> str:
    """Put the first part between the brackets, after a comment that may stand there."""
    text = source.text
    closing = into.end - 1
    edge = _back_over_blank(text, closing)
    unit = unit_of(source)
    if not unit:
        return text[:edge] + _written(source, key, wanted, None) + text[closing:]
    indent = source.indent_at(into.start)
    inner = indent + unit
    newline = newline_of(text)
    written = newline + inner + _written(source, key, wanted, inner)
    return text[:edge] + written + newline + indent + text[closing:]


def replace_part(source: Source, node: Node, wanted: Any) -> str:
    """The text with another value in this one's place."""
    text = source.text
    is_spread = "\n" in source.at(node) or source.is_first_on_line(node.start)
    indent = source.indent_at(node.start) if is_spread else None
    return text[: node.start] + _value(source, wanted, indent) + text[node.end :]


def drop_part(source: Source, out_of: Node, index: int) -> str:
    """The text without one member of a table or item of a list, its comma and its line."""
    text = source.text
    starts, ends = _starts(out_of), _ends(out_of)
    start, end = starts[index], ends[index]
    after = skip_blank(text, end)
    if text[after] == "," and text[end:after].strip(_BLANK):
        text = text[:after] + text[after + 1 :]  # a comment stands before the comma, and stays
    elif text[after] == ",":
        end = after + 1
    elif index > 0:  # the last one: the comma before it goes, and the comments around that stay
        comma = skip_blank(text, ends[index - 1])
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    if len(starts) == 1:
        closing = out_of.end - 1 - (len(source.text) - len(text))
        return _empty(text, start, end, out_of.start, closing)
    before, behind = _back_over_blank(text, start), _on_over_blank(text, end)
    is_first_on_line = "\n" in text[before:start]
    ends_line = text[behind : behind + 1] in ("\r", "\n")
    # Behind a comment that runs to the end of its line, what follows must stay on a line of its own.
    may_close_up = "//" not in text[text.rfind("\n", 0, before) + 1 : before]
    closes_up = may_close_up and text[behind : behind + 1] in ("}", "]") if is_first_on_line else index > 0
    return text[:before] + text[end:] if ends_line or closes_up else text[:start] + text[behind:]


def _empty(text: str, start: int, end: int, opening: int, closing: int) -> str:
    """Take out the only part; a comment beside it stays, and a bracket never ends up behind `//`."""
    before = _back_over_blank(text, start)
    rest = text[end:closing]
    if before == opening + 1 and not rest.strip(_BLANK):
        return text[:before] + text[closing:]
    return text[:before] + (rest if "\n" in rest else newline_of(text) + rest) + text[closing:]


def unit_of(source: Source) -> str:
    """By how much a level is indented; nothing when all stands on one line."""
    for start in _starts(source.root):
        if source.is_first_on_line(start) and source.indent_at(start):
            return source.indent_at(start)[len(source.indent_at(source.root.start)) :] or "  "
    return "" if "\n" not in source.at(source.root) and source.root.value else "  "


def whole_text(wanted: Any, newline: str = "\n") -> str:
    """A file of its own that holds just this."""
    return (json.dumps(wanted, indent=2, ensure_ascii=False) + "\n").replace("\n", newline)


def _written(source: Source, key: str | None, wanted: Any, indent: str | None) -> str:
    found = _value(source, wanted, indent)
    return found if key is None else json.dumps(key, ensure_ascii=False) + _colon(source) + found


def _value(source: Source, wanted: Any, indent: str | None) -> str:
    """A value as text; without an indent, on one line."""
    colon = _colon(source)
    if indent is None:
        comma = ", " if colon.endswith(" ") else ","
        return json.dumps(wanted, ensure_ascii=False, separators=(comma, colon))
    unit = unit_of(source) or "  "
    found = json.dumps(wanted, ensure_ascii=False, indent=unit, separators=(",", colon))
    return found.replace("\n", newline_of(source.text) + indent)


def _colon(source: Source) -> str:
    """What stands between a key and its value here."""
    members = source.root.members
    if not members:
        return ": "
    between = source.text[members[0].end : members[0].node.start]
    return between if not between.strip(" :") else ": "


def _parts(node: Node) -> tuple[Member | Node, ...]:
    return node.members or node.items


def _starts(node: Node) -> list[int]:
    return [part.start for part in _parts(node)]


def _ends(node: Node) -> list[int]:
    return [member.node.end for member in node.members] or [item.end for item in node.items]


def _on_over_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _back_over_blank(text: str, at: int) -> int:
    while at > 0 and text[at - 1] in _BLANK:
        at -= 1
    return at
