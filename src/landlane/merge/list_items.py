"""Merge the content below one heading: bullets, paragraphs or plain lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from landlane.merge.headings import is_bullet
from landlane.merge.lines import Change, changes
from landlane.merge.model import CannotMerge, shown
from landlane.values import value

Item = tuple[str, ...]


@value
class _Addition:
    """Lines inserted at one place: what continues the item above, then full items with blanks before them."""

    continued: Item
    items: tuple[Item, ...]


_NOTHING = _Addition(continued=(), items=())


def merge_content(base: Item, ours: Item, theirs: Item, where: str, is_plain: bool) -> Sequence[str]:
    """Return the lines of both sides; where `is_plain`, each line is an item.

    Raises:
        CannotMerge: the same line was changed by both, or changed by one and removed by the other.
    """
    if ours == theirs or base == theirs:
        return ours
    if base == ours:
        return theirs
    left, right = changes(base, ours), changes(base, theirs)
    _refuse_rivals(base, left, right, where)
    gone = {at for change in (*left, *right) for at in range(change.start, change.end)}
    ours_added, ours_put = _by_position(left, base, is_plain)
    theirs_added, theirs_put = _by_position(right, base, is_plain)
    spare = Counter(_bare(item) for made in left for item in _addition(made, base, is_plain).items)
    merged: list[str] = []
    for at in range(len(base) + 1):
        merged += _join(ours_added.get(at, _NOTHING), theirs_added.get(at, _NOTHING), spare)
        put, other = ours_put.get(at), theirs_put.get(at)
        merged += put.lines if put else ()
        # They can differ only where nothing but blank lines was replaced.
        merged += other.lines if other and other != put else ()
        if at < len(base) and at not in gone:
            merged.append(base[at])
    return _without_outer_blanks(merged)


def _by_position(
    made: list[Change], base: Item, is_plain: bool
) -> tuple[dict[int, _Addition], dict[int, Change]]:
    """Return what a side inserted, and what it replaced, each by where it starts."""
    added = {change.start: _addition(change, base, is_plain) for change in made if change.start == change.end}
    return added, {change.start: change for change in made if change.start < change.end}


def _refuse_rivals(base: Item, left: list[Change], right: list[Change], where: str) -> None:
    """Refuse where both sides removed the same line and at least one put something else in its place."""
    taken = {at: change for change in left for at in range(change.start, change.end) if base[at].strip()}
    conflicts: list[str] = []
    for change in right:
        for at in range(change.start, change.end):
            rival = taken.get(at)
            if rival is None or rival == change or not (rival.lines or change.lines):
                continue
            ours, theirs = (shown(" / ".join(side.lines)) for side in (rival, change))
            conflicts.append(
                f"under {where}, {shown(base[at])!r}: the target has {ours or 'removed it'!r}, "
                f"the candidate {theirs or 'removed it'!r}"
            )
            break
    if conflicts:
        raise CannotMerge("both sides changed the same lines differently", *conflicts)


def _join(ours: _Addition, theirs: _Addition, spare: Counter[Item]) -> list[str]:
    """Return both additions at one place, without items that the target has added already."""
    fresh: list[Item] = []
    for item in theirs.items:
        bare = _bare(item)
        if spare[bare]:
            spare[bare] -= 1
        else:
            fresh.append(item)
    continued = theirs.continued if theirs.continued != ours.continued else ()
    return [*ours.continued, *continued, *_flat(ours.items), *_flat(tuple(fresh))]


def _flat(items: tuple[Item, ...]) -> list[str]:
    return [line for item in items for line in item]


def _bare(item: Item) -> Item:
    return tuple(line.strip() for line in item if line.strip())


def _without_outer_blanks(lines: list[str]) -> list[str]:
    filled = [at for at, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _addition(change: Change, base: Item, is_plain: bool) -> _Addition:
    """Split inserted lines into items; indented lines at their start continue the item above."""
    continued: list[str] = []
    items: list[list[str]] = []
    above = base[change.start - 1] if change.start else ""
    is_list = is_bullet(above) or above[:1].isspace()
    blanks: list[str] = []
    for line in change.lines:
        if not line.strip():
            blanks.append(line)
            continue
        is_wrapped = not (blanks or is_plain or is_bullet(line))
        if not items and (line[:1].isspace() or (is_list and is_wrapped)):
            continued += [*blanks, line]
        elif items and (line[:1].isspace() or is_wrapped):
            items[-1] += [*blanks, line]
        else:
            items.append([*blanks, line])
        blanks = []
    (items[-1] if items else continued).extend(blanks)
    return _Addition(continued=tuple(continued), items=tuple(map(tuple, items)))
