"""Read files as lines, and write lines in the style that a file had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from landlane.merge.lines import Hunk, clean_lines, hunks, merge_lines
from landlane.merge.model import SIDES, CannotMerge, quote
from landlane.values import replace, value

BYTE_ORDER_MARK = "\ufeff"
MARKERS = ("<<<<<<< ", "||||||| ", ">>>>>>> ")  # `=======` alone may be the underline of a heading


@value
class TextLines:
    """The lines of a file, how they end, and whether the last one does."""

    lines: tuple[str, ...]
    newline: str = "\n"
    is_ended: bool = True
    is_mixed: bool = False
    mark: str = ""

    @property
    def has_line_end(self) -> bool:
        return len(self.lines) > (not self.is_ended)

    @property
    def body(self) -> str:
        """The lines as one text with plain line ends."""
        return "\n".join(self.lines) + "\n" * (self.is_ended and bool(self.lines))


def read_text(content: bytes | None, side: str, *, is_strict: bool = False) -> TextLines:
    """Split a file into lines; bytes that are not UTF-8 are kept unless `is_strict`.

    Raises:
        CannotMerge: it is binary, or has to be UTF-8 and is not.
    """
    content = content or b""
    if b"\0" in content:
        raise CannotMerge(f"{side} is not text: it has zero bytes")
    try:
        text = content.decode("utf-8", "strict" if is_strict else "surrogateescape")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CannotMerge(f"{side} is not UTF-8, first on line {line}") from None
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    lines = text[len(mark) :].split("\n")
    is_ended = lines[-1] == ""
    if is_ended:
        lines.pop()
    carriages = sum(line.endswith("\r") for line in lines[: None if is_ended else -1])
    ends = len(lines) - (not is_ended)
    newline = "\r\n" if carriages * 2 > ends else "\n"
    return TextLines(
        lines=tuple(line.removesuffix("\r") for line in lines),
        newline=newline,
        is_ended=is_ended,
        is_mixed=0 < carriages < ends,
        mark=mark,
    )


def read_sides(
    base: bytes | None, ours: bytes | None, theirs: bytes | None, *, is_strict: bool = False
) -> tuple[TextLines, TextLines, TextLines]:
    """Read all three; a target without lines, or without line ends, takes those of another side.

    Raises:
        CannotMerge: one of them is not text, or has conflict markers left in it.
    """
    first, second, third = (
        read_text(content, side, is_strict=is_strict)
        for content, side in zip((base, ours, theirs), SIDES, strict=True)
    )
    for text, side in ((second, SIDES[1]), (third, SIDES[2])):
        if marker := find_marker(text.lines):
            raise CannotMerge(f"{side} has {marker}")
    if not second.lines:
        second = TextLines(lines=(), newline=third.newline, is_ended=third.is_ended, mark=third.mark)
    if not second.has_line_end:
        newline = next((text.newline for text in (third, first) if text.has_line_end), second.newline)
        second = replace(second, newline=newline)
    return first, second, third


def write_text(lines: Iterable[str], style: TextLines) -> bytes:
    """Return the lines as a file with the line ends, and the end, of the given text."""
    lines = list(lines)
    text = style.newline.join(lines)
    end = style.newline if style.is_ended and lines else ""
    return (style.mark + text + end).encode("utf-8", "surrogateescape")


def style_notes(style: TextLines) -> tuple[str, ...]:
    """Return notes on changes of the file's style."""
    if not style.is_mixed:
        return ()
    name = "CRLF" if style.newline == "\r\n" else "LF"
    return (f"the target mixed line ends; all are {name} now",)


def find_marker(lines: Sequence[str]) -> str:
    """Return a description of the first conflict marker; empty when there is none."""
    for number, line in enumerate(lines, 1):
        if line.startswith(MARKERS):
            return f"a conflict marker on line {number}: {quote(line)}"
    return ""


def merge_rest(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], what: str) -> list[str]:
    """Merge lines in the ordinary way.

    Raises:
        CannotMerge: both sides changed the same place differently.
    """
    merged = merge_lines(base, ours, theirs)
    lines = clean_lines(merged)
    if lines is None:
        raise CannotMerge(f"both sides changed {what} differently", *map(_describe_hunk, hunks(merged)))
    return lines


def _describe_hunk(hunk: Hunk) -> str:
    ours, theirs = (quote(" / ".join(lines)) or "nothing" for lines in (hunk.ours, hunk.theirs))
    return f"line {hunk.at + 1} of the common base: the target has {ours!r}, the candidate {theirs!r}"
