"""Diffs as rows that a page can show: numbers, signs, code with colours, the words that changed."""

from __future__ import annotations

import itertools
import re
from difflib import SequenceMatcher
from functools import lru_cache

from landlane.git.run import try_git_output
from landlane.text import in_one_line, printable
from landlane.values import value
from landlane.web.syntax import Piece, colour, language_of, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from landlane.git.discovery import Checkout

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_MOST_LINES = 4_000  # of a whole diff
_LONGEST = 1_000  # characters of a line
_MOST_MARKED = 400  # characters of a line in which single words are marked
_MOST_WORDS = 80  # and its words: the time to compare them grows with their third power
_TAB = "    "


@value
class Line:
    """A line of a diff: `sign` is +, − or empty."""

    sign: str
    old: int
    new: int
    pieces: tuple[Piece, ...]


@value
class Hunk:
    """Lines that stand together, with what git says they are in."""

    heading: str
    lines: tuple[Line, ...]


@value
class FileDiff:
    """The changes of one file."""

    path: str
    old_path: str
    status: str  # changed, new, deleted, renamed
    is_binary: bool
    hunks: tuple[Hunk, ...]
    added: int
    removed: int

    @property
    def lines(self) -> list[Line]:
        """Return all lines."""
        return [line for hunk in self.hunks for line in hunk.lines]


@value
class Diff:
    """The changes between two commits; `left_out` lines are not shown."""

    files: tuple[FileDiff, ...]
    left_out: int = 0

    @property
    def added(self) -> int:
        """Return how many lines are new."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """Return how many lines are gone."""
        return sum(file.removed for file in self.files)


def read_diff(home: Checkout, base: str, head: str) -> Diff:
    """Return what a commit changes since its merge base with another."""
    if not (_COMMIT.fullmatch(base) and _COMMIT.fullmatch(head)):
        return Diff(files=())
    try:
        return _read_known(home, base, head)
    except LookupError:
        return Diff(files=())


@lru_cache(maxsize=64)
def _read_known(home: Checkout, base: str, head: str) -> Diff:
    """Return the changes; they are kept, as commits do not change.

    Raises:
        LookupError: there are none, or git does not know them yet; that is not kept.
    """
    text = try_git_output(
        home, "-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M",
        "--src-prefix=a/", "--dst-prefix=b/", f"{base}...{head}", "--",
    )  # fmt: skip
    if not text:
        raise LookupError
    return parse_diff(text)


def read_changes(home: Checkout, before: str, after: str) -> Diff:
    """Return what differs between two commits themselves."""
    if not (_COMMIT.fullmatch(before) and _COMMIT.fullmatch(after)):
        return Diff(files=())
    text = try_git_output(
        home, "-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M",
        "--src-prefix=a/", "--dst-prefix=b/", before, after, "--",
    )  # fmt: skip
    return parse_diff(text)


def parse_diff(text: str) -> Diff:
    """Return the files of a diff in git's format."""
    lines = printable(text).split("\n")
    left_out = max(len(lines) - _MOST_LINES, 0)
    starts = [at for at, line in enumerate(lines[:_MOST_LINES]) if line.startswith("diff --git ")]
    ends = [*starts[1:], min(len(lines), _MOST_LINES)] if starts else []
    files = tuple(_parse_file(lines[start:end]) for start, end in zip(starts, ends, strict=True))
    return Diff(files=files, left_out=left_out)


def _parse_file(lines: Sequence[str]) -> FileDiff:
    head = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    facts = {line.partition(" ")[0]: line for line in lines[1:head]}
    old, new = _paths(lines[0], lines[1:head])
    status = (
        "new"
        if "new" in facts
        else "deleted"
        if "deleted" in facts
        else "renamed"
        if old != new
        else "changed"
    )
    language = language_of(new or old)
    hunks = tuple(_hunks(lines[head:], language))
    every = [line for hunk in hunks for line in hunk.lines]
    return FileDiff(
        path=in_one_line(new or old),
        old_path=in_one_line(old),
        status=status,
        is_binary="Binary" in facts,
        hunks=hunks,
        added=sum(line.sign == "+" for line in every),
        removed=sum(line.sign == "−" for line in every),
    )


def _paths(first: str, header: Sequence[str]) -> tuple[str, str]:
    """Return the old and the new path of a file."""
    names = {line[:3]: line[4:].rstrip("\t") for line in header if line.startswith(("--- ", "+++ "))}
    renamed = {line.partition(" ")[2][:2]: line for line in header if line.startswith("rename ")}
    if len(renamed) == 2:  # a long diff may end between the two
        return renamed["fr"].removeprefix("rename from "), renamed["to"].removeprefix("rename to ")
    old, new = names.get("---", ""), names.get("+++", "")
    if not old:  # binary or empty: both halves of the first line are the same path
        half = first.removeprefix("diff --git ")
        path = half[len(half) // 2 + 1 :].removeprefix("b/")
        return path, path
    old, new = ("" if one == "/dev/null" else one[2:] for one in (old, new))
    return old or new, new or old


def _hunks(lines: Sequence[str], language: str) -> Iterator[Hunk]:
    starts = [at for at, line in enumerate(lines) if _HUNK.match(line)]
    for start, end in itertools.pairwise([*starts, len(lines)]):
        match = _HUNK.match(lines[start])
        assert match is not None
        made = _lines(lines[start + 1 : end], int(match[1]), int(match[2]), language)
        yield Hunk(heading=in_one_line(match[3]), lines=tuple(made))


def _lines(lines: Sequence[str], old: int, new: int, language: str) -> list[Line]:
    found: list[Line] = []
    marks = _changed_words(lines)
    for at, line in enumerate(lines):
        sign, code = line[:1], in_one_line(line[1:].replace("\t", _TAB))[:_LONGEST]
        pieces = mark(colour(code, language), marks.get(at, ()))
        if sign == "+":
            found.append(Line(sign="+", old=0, new=new, pieces=pieces))
        elif sign == "-":
            found.append(Line(sign="−", old=old, new=0, pieces=pieces))
        elif sign == " ":
            found.append(Line(sign="", old=old, new=new, pieces=pieces))
        old += sign in ("-", " ")
        new += sign in ("+", " ")
    return found


def _changed_words(lines: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
    """Return the characters that changed, by line, where as many lines are removed as added in one place."""
    marks: dict[int, list[tuple[int, int]]] = {}
    at = 0
    while at < len(lines):
        removed = _run(lines, at, "-")
        added = _run(lines, at + removed, "+") if removed else 0
        if removed and removed == added:
            for offset in range(removed):
                one, other = at + offset, at + removed + offset
                marks[one], marks[other] = _differences(lines[one], lines[other])
        at += max(removed + added, 1)
    return marks


def _run(lines: Sequence[str], at: int, sign: str) -> int:
    end = at
    while end < len(lines) and lines[end][:1] == sign:
        end += 1
    return end - at


def _differences(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    before, after = in_one_line(old[1:].replace("\t", _TAB)), in_one_line(new[1:].replace("\t", _TAB))
    if max(len(before), len(after)) > _MOST_MARKED:
        return [], []
    words = [re.findall(r"\w+|\s+|.", text) for text in (before, after)]
    if max(map(len, words)) > _MOST_WORDS:
        return [], []
    matcher = SequenceMatcher(None, *words, autojunk=False)
    if matcher.ratio() < 0.4:
        return [], []
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            for side, start, end in ((0, a, b), (1, c, d)):
                first = sum(map(len, words[side][:start]))
                length = sum(map(len, words[side][start:end]))
                if length:
                    found[side].append((first, first + length))
    return found


def side_by_side(hunk: Hunk) -> list[tuple[Line | None, Line | None]]:
    """Return pairs of lines: removed ones beside the added ones in their place."""
    rows: list[tuple[Line | None, Line | None]] = []
    removed: list[Line] = []
    added: list[Line] = []

    def flush() -> None:
        for at in range(max(len(removed), len(added))):
            left = removed[at] if at < len(removed) else None
            right = added[at] if at < len(added) else None
            rows.append((left, right))
        removed.clear()
        added.clear()

    for line in hunk.lines:
        if line.sign == "−":
            if added:
                flush()
            removed.append(line)
        elif line.sign == "+":
            added.append(line)
        else:
            flush()
            rows.append((line, line))
    flush()
    return rows
