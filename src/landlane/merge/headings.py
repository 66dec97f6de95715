"""Read a text as a tree of headings: Markdown with `#`, or underlined as in reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from landlane.values import value

_HASHES = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r"(=|-|~|\^|\")\1{2,}[ \t]*$")
_UNDERLINED_LEVELS = '=-~^"'
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]")

Key = tuple[int, str, int]  # level, title, and its index among siblings of that title


@value
class HeadingSection:
    """A heading as it is written, the lines below it, and the sections in it; the root has no heading."""

    key: Key
    heading: tuple[str, ...]
    above: int  # blank lines before the first line of content
    content: tuple[str, ...]
    below: int  # blank lines after the last
    children: tuple[HeadingSection, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of its children."""
        return tuple(child.key for child in self.children)

    def child(self, key: Key) -> HeadingSection:
        """Return the child of that key, or an empty section."""
        return next((child for child in self.children if child.key == key), absent(key))


def absent(key: Key) -> HeadingSection:
    """Return an empty section, for a side without it."""
    return HeadingSection(key=key, heading=(), above=0, content=(), below=0, children=())


def title_level(*texts: Sequence[str]) -> int:
    """Return the level of the title of these texts: one heading above all others; 0 if there is none.

    Sections are then siblings of the title and not its children, so that they keep their place when one side
    adds a title above them.
    """
    levels = [[level for _, _, level, _ in _headings(lines)] for lines in texts]
    highest = min((level for found in levels for level in found), default=0)
    is_title = all(highest not in found[1:] for found in levels)
    return highest if is_title else 0


def read_sections(lines: Sequence[str], leaf_level: int = 0) -> HeadingSection:
    """Return the tree of sections of a text; headings of the level `leaf_level` have no children."""
    heads = list(_headings(lines))
    flat: list[tuple[int, str, tuple[str, ...], tuple[str, ...]]] = []
    starts = [(0, 0, 0, ""), *heads]
    ends = [start for start, _, _, _ in heads] + [len(lines)]
    for (start, length, level, title), end in zip(starts, ends, strict=True):
        flat.append((level, title, tuple(lines[start : start + length]), tuple(lines[start + length : end])))
    root, _ = _build(flat, 0, (0, "", 0), leaf_level)
    return root


def _build(
    flat: list[tuple[int, str, tuple[str, ...], tuple[str, ...]]], at: int, key: Key, leaf_level: int
) -> tuple[HeadingSection, int]:
    level, _, heading, body = flat[at]
    at += 1
    seen: dict[tuple[int, str], int] = {}
    children: list[HeadingSection] = []
    while at < len(flat) and flat[at][0] > level and not (level and level == leaf_level):
        name = flat[at][:2]
        child, at = _build(flat, at, (*name, seen.get(name, 0)), leaf_level)
        seen[name] = seen.get(name, 0) + 1
        children.append(child)
    filled = [index for index, line in enumerate(body) if line.strip()]
    first, last = (filled[0], filled[-1] + 1) if filled else (len(body), len(body))
    section = HeadingSection(
        key=key,
        heading=heading,
        above=first,
        content=body[first:last],
        below=len(body) - last,
        children=tuple(children),
    )
    return section, at


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield where each heading starts, how many lines it has, its level and its title."""
    fence = ""
    for at, line in enumerate(lines):
        fenced = _FENCE.match(line)
        if fenced:
            mark = fenced[1]
            if not fence:
                fence = mark
            elif mark.startswith(fence) and not line.strip().strip(mark[0]):
                fence = ""
            continue
        if fence:
            continue
        hashes = _HASHES.match(line)
        if hashes:
            yield at, 1, len(hashes[1]), _hash_title(line[hashes.end() :])
        elif _is_underlined(lines, at):
            yield at, 2, _UNDERLINED_LEVELS.index(lines[at + 1][0]) + 1, " ".join(line.split())


def _hash_title(text: str) -> str:
    """Return the title without the hashes that may close it."""
    bare = text.rstrip().rstrip("#")
    return " ".join((bare if not bare.strip() or bare[-1].isspace() else text).split())


def _is_underlined(lines: Sequence[str], at: int) -> bool:
    """Return whether this line is a title: alone above a rule that is at least as long."""
    line = lines[at].rstrip()
    if not line or line[0].isspace() or at + 1 == len(lines) or is_bullet(line):
        return False
    if not _UNDERLINE.match(lines[at + 1]) or len(lines[at + 1].rstrip()) < len(line):
        return False
    return not _UNDERLINE.match(line) and (at == 0 or not lines[at - 1].strip())


def is_bullet(line: str) -> bool:
    """Return whether the line begins an item of a list."""
    return _BULLET.match(line) is not None


def repeated_headings(lines: Sequence[str]) -> dict[tuple[str, ...], int]:
    """Return the titles, after those above them, that are repeated at the same place, and how often."""
    found: dict[tuple[str, ...], int] = {}

    def visit(section: HeadingSection, around: tuple[str, ...]) -> None:
        for child in section.children:
            level, title, nth = child.key
            path = (*around, f"{'#' * level} {title}")
            if nth:
                found[path] = max(found.get(path, 0), nth + 1)
            visit(child, path)

    visit(read_sections(lines), ())
    return found
