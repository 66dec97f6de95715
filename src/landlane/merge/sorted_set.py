"""Sorted sets: files with one element on each line, such as allow-lists, registries and lists of owners.

An element is known by its line without indentation and trailing comma. Comments and blank lines above it
are its own and move with it; a block of comments at the top belongs to the file. The result is sorted the way
the file is; a file that is not sorted keeps its order, and what is new stands after its predecessor.
"""

from __future__ import annotations

from itertools import pairwise

from landlane.merge.combine_order import weave
from landlane.merge.result import SIDES, CannotMerge, Merged, shown
from landlane.merge.set_text import Element, Parts, take_apart
from landlane.merge.text_file import merge_rest, option_text, read_sides, read_text, style_notes, write_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Lines = tuple[str, ...]
    Order = Callable[[str], str]

ORDERS = ("sensitive", "insensitive", "none")


_NOTHING = Parts(
    before=(),
    header=(),
    elements={},
    footer=(),
    after=(),
    repeated=(),
    has_commas=False,
    has_last_comma=False,
)


def merge_set(
    base: bytes | None, ours: bytes | None, theirs: bytes | None, options: Mapping[str, object]
) -> Merged:
    """Both sides' elements, without those that either took out.

    Raises:
        CannotMerge: a side lacks the markers, both changed an element differently, or the rest differs.
    """
    texts = read_sides(base, ours, theirs)
    lines = [text.lines for text in texts]
    sides = [
        take_apart(text, side, options, lines)
        for text, side, content in zip(lines, SIDES, (base, ours, theirs), strict=True)
        if content is not None
    ]
    if base is None:
        sides.insert(0, _NOTHING)
    first, second, third = sides
    _refuse_rivals(first.elements, second.elements, third.elements)
    elements = _merge_elements(first.elements, second.elements, third.elements)
    order, notes = _order([side.elements for side in sides], options)
    if order:
        elements.sort(key=lambda element: order(element.name))
    if second.repeated:
        notes += (f"the target had more than once: {shown(', '.join(second.repeated))}",)
    merged = [
        *merge_rest(first.before, second.before, third.before, "the text before the set"),
        *merge_rest(first.header, second.header, third.header, "the comment at the top"),
        *_write(elements, second if second.elements else third),
        *merge_rest(first.footer, second.footer, third.footer, "the comment at the end"),
        *merge_rest(first.after, second.after, third.after, "the text after the set"),
    ]
    return Merged(content=write_text(merged, texts[1]), notes=(*notes, *style_notes(texts[1])))


def check_set(content: bytes, options: Mapping[str, object]) -> str:
    """What is wrong with a set: an element stands twice, or it is not sorted (and the option `base` was)."""
    lines = read_text(content, "the file").lines
    parts = take_apart(lines, "the file", options, [lines])
    before = options.get("base")
    if parts.repeated:
        return f"it has more than once: {shown(', '.join(parts.repeated))}"
    if isinstance(before, bytes) and check_set(before, {**options, "base": None}):
        return ""
    wanted = option_text(options, "order")
    if wanted == "none" or _order([parts.elements], options)[0]:
        return ""
    order: Order = str if wanted == "sensitive" else str.casefold
    early, late = next(pair for pair in pairwise(parts.elements) if order(pair[1]) < order(pair[0]))
    return f"it is not sorted: {shown(late)!r} stands after {shown(early)!r}"


# --------------------------------------------------------------------------------------------- merging


def _refuse_rivals(base: dict[str, Element], ours: dict[str, Element], theirs: dict[str, Element]) -> None:
    """Refuse where both took out an element and one put another with the same first word in its place."""
    found: list[str] = []
    ours_new, theirs_new = _new_by_word(base, ours), _new_by_word(base, theirs)
    for name in base:
        if name in ours or name in theirs:
            continue
        word = name.split()[0] if name else ""
        left, right = ours_new.get(word, []), theirs_new.get(word, [])
        if left != right and len(name.split()) > 1:
            said = [shown(" / ".join(side)) or "removed it" for side in (left, right)]
            found.append(f"{shown(name)!r}: the target has {said[0]!r}, the candidate {said[1]!r}")
    if found:
        raise CannotMerge("both sides changed the same elements differently", *found)


def _new_by_word(base: dict[str, Element], side: dict[str, Element]) -> dict[str, list[str]]:
    """What a side added, by its first word."""
    found: dict[str, list[str]] = {}
    for name in sorted(side):
        if name and name not in base:
            found.setdefault(name.split()[0], []).append(name)
    return found


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
            ours_says, theirs_says = shown(" / ".join(left.above)), shown(" / ".join(right.above))
            detail = f"above {shown(name)!r}: the target has {ours_says!r}, the candidate {theirs_says!r}"
            raise CannotMerge("both sides changed the same comment differently", detail)
        merged.append(Element(name=name, line=left.line, above=above))
    return merged


def _order(
    sides: Sequence[dict[str, Element]], options: Mapping[str, object]
) -> tuple[Order | None, tuple[str, ...]]:
    """How the file is sorted: judged by all sides, else by the target alone; None when it is not."""
    wanted = option_text(options, "order")
    orders: dict[str, Order] = {"sensitive": str, "insensitive": str.casefold}
    if wanted and wanted not in ORDERS:
        raise CannotMerge(f"the option order has to be one of {', '.join(ORDERS)}, not {shown(wanted)!r}")
    if wanted and len(sides) > 1:
        return orders.get(wanted), ()
    if wanted:
        orders = {wanted: orders[wanted]}
    rows = [[*side] for side in sides]
    for group in (rows, rows[1:2]):
        for order in orders.values():
            if group and all(row == sorted(row, key=order) for row in group):
                return order, ()
    return None, ("the target is not sorted, so each element stands after its predecessor",)


def _write(elements: list[Element], style: Parts) -> list[str]:
    lines: list[str] = []
    for at, element in enumerate(elements):
        has_comma = style.has_commas and (style.has_last_comma or at < len(elements) - 1)
        lines += [*element.above, element.line + "," * has_comma]
    return lines
