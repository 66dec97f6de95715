"""Merge sorted sets: files with one element per line, such as allow-lists, registries and lists of owners.

An element is identified by its line without indentation and trailing comma. Comments and blank lines above it
belong to it and move with it; a block of comments at the top belongs to the file. The result is sorted as the
file is. A file that is not sorted keeps its order, and a new element is put after its predecessor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from landlane.merge.combine_order import weave
from landlane.merge.model import SIDES, CannotMerge, Merged, quote
from landlane.merge.text_file import merge_rest, read_sides, read_text, style_notes, write_text
from landlane.values import value

Lines = tuple[str, ...]
SortKey = Callable[[str], str]

_COMMENT = "#"


@value
class Element:
    """One line of the set and the comments above it."""

    name: str
    line: str  # without its comma
    above: Lines


@value
class SetFile:
    """A file with a set: what is before it, its header, the elements by name, and what comes after."""

    elements: dict[str, Element]
    before: Lines = ()
    header: Lines = ()
    footer: Lines = ()
    after: Lines = ()
    repeated: Lines = ()
    has_commas: bool = False
    has_last_comma: bool = False


def merge_set(
    base: bytes | None, ours: bytes, theirs: bytes, path: str, options: Mapping[str, str]
) -> Merged:
    """Merge the elements of both sides, without those that either removed.

    Raises:
        CannotMerge: a side lacks the markers, both changed an element differently, or the rest differs.
    """
    del path
    texts = read_sides(base, ours, theirs)
    lines = [text.lines for text in texts]
    first, second, third = sides = [
        SetFile(elements={}) if content is None else _read_set(text, side, options, lines)
        for text, side, content in zip(lines, SIDES, (base, ours, theirs), strict=True)
    ]
    _refuse_rivals(first.elements, second.elements, third.elements)
    elements = _merge_elements(first.elements, second.elements, third.elements)
    order, notes = _find_order([side.elements for side in sides])
    if order:
        elements.sort(key=lambda element: order(element.name))
    if second.repeated:
        notes += (f"the target had more than once: {quote(', '.join(second.repeated))}",)
    merged = [
        *merge_rest(first.before, second.before, third.before, "the text before the set"),
        *merge_rest(first.header, second.header, third.header, "the comment at the top"),
        *_write(elements, second if second.elements else third),
        *merge_rest(first.footer, second.footer, third.footer, "the comment at the end"),
        *merge_rest(first.after, second.after, third.after, "the text after the set"),
    ]
    return Merged(content=write_text(merged, texts[1]), notes=(*notes, *style_notes(texts[1])))


def check_set(content: bytes, path: str, options: Mapping[str, str], before: bytes | None) -> str:
    """Return which element is repeated or out of order; the latter is accepted if `before` was unsorted."""
    lines = read_text(content, "the file").lines
    file = _read_set(lines, "the file", options, [lines])
    if file.repeated:
        return f"it has more than once: {quote(', '.join(file.repeated))}"
    if before is not None and check_set(before, path, options, None):
        return ""
    if _find_order([file.elements])[0]:
        return ""
    fold = str.casefold
    early, late = next(pair for pair in pairwise(file.elements) if fold(pair[1]) < fold(pair[0]))
    return f"it is not sorted: {quote(late)!r} stands after {quote(early)!r}"


def _refuse_rivals(base: dict[str, Element], ours: dict[str, Element], theirs: dict[str, Element]) -> None:
    """Refuse if both sides removed an element and one replaced it by another with the same first word."""
    conflicts: list[str] = []
    ours_new, theirs_new = _new_by_word(base, ours), _new_by_word(base, theirs)
    for name in base:
        if name in ours or name in theirs:
            continue
        word = name.split()[0] if name else ""
        left, right = ours_new.get(word, []), theirs_new.get(word, [])
        if left != right and len(name.split()) > 1:
            texts = [quote(" / ".join(side)) or "removed it" for side in (left, right)]
            conflicts.append(f"{quote(name)!r}: the target has {texts[0]!r}, the candidate {texts[1]!r}")
    if conflicts:
        raise CannotMerge("both sides changed the same elements differently", *conflicts)


def _new_by_word(base: dict[str, Element], side: dict[str, Element]) -> dict[str, list[str]]:
    """Return what a side added, by its first word."""
    new: dict[str, list[str]] = {}
    for name in sorted(side):
        if name and name not in base:
            new.setdefault(name.split()[0], []).append(name)
    return new


def _merge_elements(
    base: dict[str, Element], ours: dict[str, Element], theirs: dict[str, Element]
) -> list[Element]:
    merged: list[Element] = []
    for name in weave(list(base), list(ours), list(theirs)):
        left, right, before = ours.get(name), theirs.get(name), base.get(name)
        if left is None or right is None:
            if before is None:
                merged += filter(None, (left, right))
            continue
        above = left.above
        if before is None or left.above == before.above:
            above = right.above if before else (left.above or right.above)
        elif right.above not in (before.above, left.above):
            ours_says, theirs_says = quote(" / ".join(left.above)), quote(" / ".join(right.above))
            detail = f"above {quote(name)!r}: the target has {ours_says!r}, the candidate {theirs_says!r}"
            raise CannotMerge("both sides changed the same comment differently", detail)
        merged.append(Element(name=name, line=left.line, above=above))
    return merged


def _find_order(sides: Sequence[dict[str, Element]]) -> tuple[SortKey | None, tuple[str, ...]]:
    """Return how all sides are sorted, or else the target alone; None if it is not sorted."""
    rows = [[*side] for side in sides]
    for group in (rows, rows[1:2]):
        for order in (str, str.casefold):
            if group and all(row == sorted(row, key=order) for row in group):
                return order, ()
    return None, ("the target is not sorted, so each element stands after its predecessor",)


def _write(elements: list[Element], style: SetFile) -> list[str]:
    lines: list[str] = []
    for at, element in enumerate(elements):
        has_comma = style.has_commas and (style.has_last_comma or at < len(elements) - 1)
        lines += [*element.above, element.line + "," * has_comma]
    return lines


def _read_set(lines: Lines, side: str, options: Mapping[str, str], all_sides: Sequence[Lines]) -> SetFile:
    """Read a file as a set; `all_sides` show whether elements have comments of their own.

    Raises:
        CannotMerge: the markers that the options name are not there.
    """
    start, end = _bounds(lines, side, options)
    inner = lines[start:end]
    has_commas, has_last_comma = _commas([line for line in inner if _is_element(line)])
    # The first side is the base, or the only one there is.
    base_start, base_end = _bounds(all_sides[0], side, options) if all_sides[0] else (0, 0)
    is_owned = any(map(_has_own_comments, all_sides))
    header_end = _header_end(inner, all_sides[0][base_start:base_end], is_owned=is_owned)
    elements: dict[str, Element] = {}
    repeated: list[str] = []
    above: list[str] = []
    for line in inner[header_end:]:
        if not _is_element(line):
            above.append(line)
            continue
        text = line.rstrip().removesuffix(",") if has_commas else line
        name = text.strip()
        if name in elements:
            repeated.append(name)
        elements.setdefault(name, Element(name=name, line=text, above=tuple(above)))
        above = []
    return SetFile(
        before=lines[:start],
        header=inner[:header_end],
        elements=elements,
        footer=tuple(above),
        after=lines[end:],
        repeated=tuple(repeated),
        has_commas=has_commas,
        has_last_comma=has_last_comma,
    )


def _bounds(lines: Lines, side: str, options: Mapping[str, str]) -> tuple[int, int]:
    begin, end = (options.get(name, "").strip() for name in ("begin", "end"))
    stripped = [line.strip() for line in lines]
    if begin and stripped.count(begin) != 1:
        raise CannotMerge(
            f"{side} has the line {begin!r}, where the set begins, {stripped.count(begin)} times"
        )
    start = stripped.index(begin) + 1 if begin else 0
    if not end:
        return start, len(lines)
    if end not in stripped[start:]:
        raise CannotMerge(f"{side} has no line {end!r}, where the set ends")
    return start, stripped.index(end, start)


def _is_element(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(_COMMENT)


def _header_end(lines: Lines, base: Lines, *, is_owned: bool) -> int:
    """Return where the comment at the top ends: at its last blank line, else where the elements begin."""
    first = _first_element(lines)
    blanks = [at + 1 for at in range(first) if not lines[at].strip()]
    if blanks:
        return blanks[-1]
    # Where other elements have comments of their own, one that touches the first element belongs to it.
    if is_owned:
        return 0
    if first == len(lines) or lines[first] in base:
        return first
    # An element that is new at the top may have brought a comment, below the header of the base.
    header = base[: _first_element(base)]
    return next((at for at in range(first) if lines[at : at + 1] != header[at : at + 1]), first)


def _first_element(lines: Lines) -> int:
    return next((at for at, line in enumerate(lines) if _is_element(line)), len(lines))


def _has_own_comments(lines: Lines) -> bool:
    """Return whether a comment touches an element other than the first."""
    start = _first_element(lines)
    return any(
        _is_element(line) and above.strip() and not _is_element(above)
        for above, line in pairwise(lines[start:])
    )


def _commas(elements: list[str]) -> tuple[bool, bool]:
    """Return whether commas separate the elements, and whether the last one has one, too."""
    ends = [line.rstrip().endswith(",") for line in elements]
    return bool(ends) and all(ends[:-1]) and (len(ends) > 1 or ends[0]), bool(ends) and ends[-1]
