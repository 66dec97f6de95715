"""A marked block, or one line, of ours in a text file of somebody else: put in, replaced, and taken out."""

from __future__ import annotations

from landlane.managed_files.agents_md import BLOCK_BEGIN, BLOCK_END
from landlane.values import value

MARKDOWN = (BLOCK_BEGIN, BLOCK_END)
HASHES = ("# landlane: begin", "# landlane: end")


@value
class _Cut:
    """A text around a block: what stands before and behind it, and whether there is one."""

    before: str
    behind: str
    is_there: bool


def put_block(text: str, body: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """The text with this body as its block: in place of the old one, or behind everything else."""
    newline = _newline_of(text)
    lines = [marks[0], *body.strip("\n").split("\n"), marks[1]]
    block = newline.join(line.rstrip("\r") for line in lines)
    cut = _cut(text, marks)
    if cut.is_there:
        return cut.before + block + cut.behind
    return text + _gap(text, newline) + block + newline


def drop_block(text: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """The text without the block and the blank line that was put before it."""
    cut = _cut(text, marks)
    if not cut.is_there:
        return text
    return _joined(cut.before, cut.behind, _newline_of(text))


def block_of(text: str, marks: tuple[str, str] = MARKDOWN) -> str | None:
    """What stands in the block, without its marks; nothing when there is none."""
    cut = _cut(text, marks)
    if not cut.is_there:
        return None
    found = text[len(cut.before) : len(text) - len(cut.behind)]
    return "\n".join(found.splitlines()[1:-1])


def put_line(text: str, line: str) -> str:
    """The text with this line behind everything else."""
    newline = _newline_of(text)
    return text + _gap(text, newline) + line + newline


def drop_line(text: str, line: str) -> str:
    """The text without the last line that says just this, and the blank line that was put before it."""
    lines = text.splitlines(keepends=True)
    for index in reversed(range(len(lines))):
        if lines[index].strip() == line:
            before, behind = "".join(lines[:index]), "".join(lines[index + 1 :])
            return _without_gap(before, _newline_of(text)) + behind
    return text


def has_line(text: str, *wanted: str) -> bool:
    """Whether one of these stands in the text as a word, outside of code."""
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and any(word in wanted for word in line.split()):
            return True
    return False


def _cut(text: str, marks: tuple[str, str]) -> _Cut:
    start = text.find(marks[0].partition(" (")[0])  # what stands in brackets there may change
    end = text.find(marks[1], start) if start >= 0 else -1
    if end < 0:
        return _Cut(before=text, behind="", is_there=False)
    return _Cut(before=text[:start], behind=text[end + len(marks[1]) :], is_there=True)


def _joined(before: str, behind: str, newline: str) -> str:
    return _without_gap(before, newline) + behind.removeprefix("\r").removeprefix("\n")


def _without_gap(before: str, newline: str) -> str:
    return before[: -len(newline)] if before.endswith(newline * 2) else before


def _gap(text: str, newline: str) -> str:
    """What has to stand between a text and what is added to it: one blank line."""
    if not text.strip("\ufeff"):
        return ""
    if text.endswith(newline * 2):
        return ""
    return newline if text.endswith("\n") else newline * 2


def _newline_of(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
