"""Put a marked block, or one line, into a text file of a user; replace it, and remove it again."""

from __future__ import annotations

from landlane.managed_files.agents_md import BLOCK_BEGIN, BLOCK_END

MARKDOWN = (BLOCK_BEGIN, BLOCK_END)
HASHES = ("# landlane: begin", "# landlane: end")


def put_block(text: str, body: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """Return the text with this body as its block: in place of the old one, or at the end."""
    newline = newline_of(text)
    lines = [marks[0], *body.strip("\n").split("\n"), marks[1]]
    block = newline.join(line.rstrip("\r") for line in lines)
    found = _find(text, marks)
    return found[0] + block + found[1] if found else put_line(text, block)


def drop_block(text: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """Return the text without the block and the blank line that was put before it."""
    found = _find(text, marks)
    if found is None:
        return text
    return _without_gap(found[0], newline_of(text)) + found[1].removeprefix("\r").removeprefix("\n")


def block_of(text: str, marks: tuple[str, str] = MARKDOWN) -> str | None:
    """Return the content of the block, without its marks; None when there is no block."""
    found = _find(text, marks)
    if found is None:
        return None
    block = text[len(found[0]) : len(text) - len(found[1])]
    return "\n".join(block.splitlines()[1:-1])


def put_line(text: str, line: str) -> str:
    """Return the text with this line at the end, after a blank one."""
    newline = newline_of(text)
    gap = newline if text.endswith("\n") else newline * 2
    if not text.strip("\ufeff") or text.endswith(newline * 2):
        gap = ""
    return text + gap + line + newline


def drop_line(text: str, line: str) -> str:
    """Return the text without the last such line and the blank line that was put before it."""
    lines = text.splitlines(keepends=True)
    for index in reversed(range(len(lines))):
        if lines[index].strip() == line:
            return _without_gap("".join(lines[:index]), newline_of(text)) + "".join(lines[index + 1 :])
    return text


def has_line(text: str, *wanted: str) -> bool:
    """Return whether one of these stands in the text as a word, outside of code."""
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and any(word in wanted for word in line.split()):
            return True
    return False


def newline_of(text: str) -> str:
    """Return how the first line of a text ends."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _find(text: str, marks: tuple[str, str]) -> tuple[str, str] | None:
    """Return the text before and after a block; None when there is no block."""
    start = text.find(marks[0].partition(" (")[0])  # what stands in brackets there may change
    end = text.find(marks[1], start) if start >= 0 else -1
    return None if end < 0 else (text[:start], text[end + len(marks[1]) :])


def _without_gap(before: str, newline: str) -> str:
    return before[: -len(newline)] if before.endswith(newline * 2) else before
