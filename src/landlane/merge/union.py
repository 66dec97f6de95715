"""Merge texts such as a changelog as a union: each side's additions are kept below their heading, each once.

The text is a tree of sections, and each section is merged with the one of the same heading. Additions of both
sides stay, the target's first where they meet. Lines that a side removed are gone. A line that both sides
changed differently, or that one changed and the other removed, is a conflict. An item (a bullet with what is
indented below it, or a paragraph) that both sides added to the same section appears once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from landlane.merge.combine_order import weave
from landlane.merge.headings import (
    HeadingSection,
    Key,
    absent,
    is_bullet,
    read_sections,
    repeated_headings,
    title_level,
)
from landlane.merge.lines import Change, changes
from landlane.merge.model import CannotMerge, Merged, quote
from landlane.merge.text_file import read_sides, read_text, style_notes, write_text
from landlane.values import replace, value

Item = tuple[str, ...]


@value
class _Addition:
    """Lines inserted at one place: what continues the item above, then full items with blanks before them."""

    continued: Item
    items: tuple[Item, ...]


_NOTHING = _Addition(continued=(), items=())


def merge_union(
    base: bytes | None, ours: bytes, theirs: bytes, path: str, options: Mapping[str, str]
) -> Merged:
    """Keep the additions of both sides, below the headings they were added to.

    Raises:
        CannotMerge: the same line was changed by both, or changed by one and removed by the other.
    """
    del path, options
    sides = read_sides(base, ours, theirs)
    notes: list[str] = []
    title = title_level(*(side.lines for side in sides))
    trees = [read_sections(side.lines, title) for side in sides]
    merged = _merge_section(trees[0], trees[1], trees[2], notes)
    _refuse_doubles(trees[0], trees[1], trees[2], merged)
    lines = _write(_separate_last(merged, trees[1], trees[2]))
    return Merged(content=write_text(lines, sides[1]), notes=(*notes, *style_notes(sides[1])))


def _refuse_doubles(
    base: HeadingSection, ours: HeadingSection, theirs: HeadingSection, merged: HeadingSection
) -> None:
    """Refuse when a line is in the result more often than the changes of both sides explain.

    That happens when one side moved it below another heading, and the other moved it elsewhere or removed it.
    """
    before, now, then = (Counter(_contents(side)) for side in (base, ours, theirs))
    doubled: list[str] = []
    for line, count in Counter(_contents(merged)).items():
        is_removed_by_both = now[line] < before[line] > then[line]
        most = min(now[line], then[line]) if is_removed_by_both else now[line] + then[line] - before[line]
        if line.strip() and count > most:
            doubled.append(repr(quote(line)))
    if doubled:
        raise CannotMerge("both sides moved or removed the same lines, each in its own way", *doubled)


def _contents(section: HeadingSection) -> list[str]:
    return [*section.content, *(line for child in section.children for line in _contents(child))]


def check_union(content: bytes, path: str, options: Mapping[str, str], before: bytes | None) -> str:
    """Return which heading is repeated, unless it was repeated `before`."""
    del path, options
    lines = read_text(content, "the file").lines
    known = repeated_headings(read_text(before, "the base").lines)
    for titles, count in repeated_headings(lines).items():
        if count > known.get(titles, 1):
            return f"the heading {quote(' > '.join(titles))!r} stands {count} times at the same place"
    return ""


def _merge_section(
    base: HeadingSection, ours: HeadingSection, theirs: HeadingSection, notes: list[str]
) -> HeadingSection:
    present = [side for side in (ours, theirs) if side.content]
    contents = base.content, ours.content, theirs.content
    # A text without headings and bullets is a list of single lines.
    is_plain = not ours.key[0] and not (base.children or ours.children or theirs.children)
    is_plain = is_plain and not any(is_bullet(line) for content in contents for line in content)
    content = _merge_content(*contents, _title(ours.key), is_plain)
    # Blank lines around the content come from a side that has some.
    shape = ours if ours.content or not theirs.content else theirs
    above, below = shape.above, shape.below
    if len(present) == 2:
        above = theirs.above if ours.above == base.above else ours.above
        below = theirs.below if ours.below == base.below else ours.below
    heading = theirs.heading if ours.heading == base.heading or not ours.heading else ours.heading
    return HeadingSection(
        key=ours.key,
        heading=heading or ours.heading,
        above=above,
        content=tuple(content),
        below=below,
        children=_merge_children(base, ours, theirs, notes),
    )


def _merge_children(
    base: HeadingSection, ours: HeadingSection, theirs: HeadingSection, notes: list[str]
) -> tuple[HeadingSection, ...]:
    children: list[HeadingSection] = []
    sides = [{child.key: child for child in side.children} for side in (base, ours, theirs)]
    for key in weave(base.keys, ours.keys, theirs.keys):
        first, second, third = (side.get(key, absent(key)) for side in sides)
        if not second.heading and not first.heading:
            children.append(third)
            continue
        child = _merge_section(first, second, third, notes)
        is_removed = first.heading and not (second.heading and third.heading)
        if not is_removed:
            children.append(child)
        elif child.content or child.children:
            remover = "the candidate" if second.heading else "the target"
            notes.append(f"{remover} removed {_title(key)}; it stays for what the other side added to it")
            children.append(replace(child, heading=second.heading or third.heading))
    return tuple(children)


def _title(key: Key) -> str:
    return f"the heading {'#' * key[0]} {quote(key[1])}" if key[0] else "the text before the first heading"


def _separate_last(merged: HeadingSection, ours: HeadingSection, theirs: HeadingSection) -> HeadingSection:
    """Add the blank line that the last section of a side lacks, if another section follows it now."""
    last = {_path_to_last(ours), _path_to_last(theirs)}
    end = _path_to_last(merged)
    tail = _section_at(ours, _path_to_last(ours)).below

    def visit(section: HeadingSection, path: tuple[Key, ...]) -> HeadingSection:
        below = section.below
        if path == end:
            below = tail
        elif path in last and section.content:
            below = max(below, 1)
        children = tuple(visit(child, (*path, child.key)) for child in section.children)
        return replace(section, below=below, children=children)

    return visit(merged, ())


def _path_to_last(section: HeadingSection) -> tuple[Key, ...]:
    path: tuple[Key, ...] = ()
    while section.children:
        section = section.children[-1]
        path = (*path, section.key)
    return path


def _section_at(section: HeadingSection, path: tuple[Key, ...]) -> HeadingSection:
    for key in path:
        section = section.child(key)
    return section


def _write(section: HeadingSection) -> list[str]:
    lines = [*section.heading, *[""] * section.above, *section.content, *[""] * section.below]
    for child in section.children:
        lines += _write(child)
    return lines


def _merge_content(base: Item, ours: Item, theirs: Item, where: str, is_plain: bool) -> Sequence[str]:
    """Return the lines of both sides; where `is_plain`, each line is an item.

    Raises:
        CannotMerge: the same line was changed by both, or changed by one and removed by the other.
    """
    if ours == theirs or base == theirs:
        return ours
    if base == ours:
        return theirs
    left, right = changes(base, ours), changes(base, theirs)
    _refuse_rival_changes(base, left, right, where)
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


def _refuse_rival_changes(base: Item, left: list[Change], right: list[Change], where: str) -> None:
    """Refuse where both sides removed the same line and at least one put something else in its place."""
    taken = {at: change for change in left for at in range(change.start, change.end) if base[at].strip()}
    conflicts: list[str] = []
    for change in right:
        for at in range(change.start, change.end):
            rival = taken.get(at)
            if rival is None or rival == change or not (rival.lines or change.lines):
                continue
            ours, theirs = (quote(" / ".join(side.lines)) for side in (rival, change))
            conflicts.append(
                f"under {where}, {quote(base[at])!r}: the target has {ours or 'removed it'!r}, "
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
