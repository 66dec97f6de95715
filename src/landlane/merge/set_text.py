"""Sets as text: the elements of a file with the comments above them, and what stands around them."""

from __future__ import annotations

from landlane.merge.result import CannotMerge
from landlane.merge.text_file import option_text
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Lines = tuple[str, ...]


@value
class Element:
    """One line of the set and the comments above it."""

    name: str
    line: str  # without its comma
    above: Lines


@value
class Parts:
    """A file taken apart: what is before the set, its header, the elements by name, and what comes after."""

    before: Lines
    header: Lines
    elements: dict[str, Element]
    footer: Lines
    after: Lines
    repeated: Lines
    has_commas: bool
    has_last_comma: bool


def take_apart(lines: Lines, side: str, options: Mapping[str, object], all_sides: Sequence[Lines]) -> Parts:
    """A file as a set; `all_sides` tell whether elements have comments of their own.

    Raises:
        CannotMerge: the markers that the options name are not there.
    """
    start, end = _bounds(lines, side, options)
    inner = lines[start:end]
    mark = option_text(options, "comment", "#")
    has_commas, has_last_comma = _commas([line for line in inner if _is_element(line, mark)])
    # The first of them is the base, or the only one there is.
    base_start, base_end = _bounds(all_sides[0], side, options) if all_sides[0] else (0, 0)
    is_owned = any(_has_own_comments(text, mark) for text in all_sides)
    header_end = _header_end(inner, mark, all_sides[0][base_start:base_end], is_owned=is_owned)
    elements: dict[str, Element] = {}
    repeated: list[str] = []
    above: list[str] = []
    for line in inner[header_end:]:
        if not _is_element(line, mark):
            above.append(line)
            continue
        text = line.rstrip().removesuffix(",") if has_commas else line
        name = text.strip()
        if name in elements:
            repeated.append(name)
        elements.setdefault(name, Element(name=name, line=text, above=tuple(above)))
        above = []
    return Parts(
        before=lines[:start],
        header=inner[:header_end],
        elements=elements,
        footer=tuple(above),
        after=lines[end:],
        repeated=tuple(repeated),
        has_commas=has_commas,
        has_last_comma=has_last_comma,
    )


def _bounds(lines: Lines, side: str, options: Mapping[str, object]) -> tuple[int, int]:
    begin, end = option_text(options, "begin").strip(), option_text(options, "end").strip()
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


def _is_element(line: str, mark: str) -> bool:
    text = line.strip()
    return bool(text) and not (mark and text.startswith(mark))


def _header_end(lines: Lines, mark: str, base: Lines, *, is_owned: bool) -> int:
    """Where the comment at the top ends: at its last blank line, else where the elements begin."""
    first = _first_element(lines, mark)
    blanks = [at + 1 for at in range(first) if not lines[at].strip()]
    if blanks:
        return blanks[-1]
    # Where others have comments of their own, one that touches the first element is meant for that.
    if is_owned:
        return 0
    if first == len(lines) or lines[first] in base:
        return first
    # An element that is new at the top may have brought a comment, below what the base has there.
    header = base[: _first_element(base, mark)]
    return next((at for at in range(first) if lines[at : at + 1] != header[at : at + 1]), first)


def _first_element(lines: Lines, mark: str) -> int:
    return next((at for at, line in enumerate(lines) if _is_element(line, mark)), len(lines))


def _has_own_comments(lines: Lines, mark: str) -> bool:
    seen = False
    for at, line in enumerate(lines):
        if _is_element(line, mark):
            if seen and lines[at - 1].strip() and not _is_element(lines[at - 1], mark):
                return True
            seen = True
    return False


def _commas(elements: list[str]) -> tuple[bool, bool]:
    """Whether elements are parted by commas, and whether the last one has one too."""
    ends = [line.rstrip().endswith(",") for line in elements]
    return bool(ends) and all(ends[:-1]) and (len(ends) > 1 or ends[0]), bool(ends) and ends[-1]
