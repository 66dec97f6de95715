"""The only writer to the terminal: answers to stdout, the rest to stderr, colour only on a terminal."""

from __future__ import annotations

import os
import sys

from landlane.error_json import failure
from landlane.errors import LandlaneError
from landlane.platform.terminal import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Terminal:
    """Writes a command's answer, notes and errors."""

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json

    def answer(self, document: dict[str, Any], text: str = "") -> None:
        """Print the command's only answer: JSON for programs, or text for people."""
        self._out(_to_json(document) if self.is_json else text)

    def line(self, text: str) -> None:
        """Print one line of an unbounded answer, such as the followed journal."""
        self._out(text)
        if sys.stdout is not None:
            sys.stdout.flush()

    def speak(self, out: str, err: str) -> None:
        """Print text exactly as another program expects it."""
        if out and sys.stdout is not None:
            sys.stdout.buffer.write(out.encode("utf-8", "backslashreplace"))
        if err:
            _say(err if err.endswith("\n") else err + "\n")

    def table(self, title: str, columns: list[str], rows: list[list[str]]) -> str:
        """Return a table as text."""
        if not rows:
            return title
        rows = [[in_one_line(cell) for cell in cells] for cells in rows]
        if is_terminal(sys.stdout):
            from landlane.cli.rich_table import rich_table  # noqa: PLC0415 - rich is slow to load

            return rich_table(title, columns, rows)
        widths = [max(len(cells[index]) for cells in [columns, *rows]) for index in range(len(columns))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
            for cells in [columns, *rows]
        ]
        return "\n".join([title, *lines])

    def note(self, text: str) -> None:
        """Print a remark to stderr; nothing with --json."""
        if not self.is_json:
            _say(text + "\n")

    def confirm(self, question: str) -> bool:
        """Ask the person at the terminal; without one, proceed with the plan that was shown."""
        if self.is_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            return True
        _say(f"{question} [Y/n] ")
        return sys.stdin.readline().strip().lower() in ("", "y", "yes")

    def fail(self, error: LandlaneError, wall_of: Callable[[int], int] | None = None) -> int:
        """Report an error, as JSON or for people; return the exit code."""
        if self.is_json:
            self._out(_to_json(failure(error, wall_of)))
        else:
            self.complain(error.message, error.hint, error.code)
        return error.exit_code

    def complain(self, message: str, hint: str, code: str) -> None:
        """Print an error: what happened, what to do, and the code to search for."""
        red, dim, plain = ("\x1b[31m", "\x1b[2m", "\x1b[0m") if _has_colour(sys.stderr) else ("", "", "")
        _say(f"{red}landlane:{plain} {in_one_line(message)} {dim}[{code}]{plain}\n")
        if hint:
            _say(f"{dim}hint:{plain} {in_one_line(hint)}\n")

    def _out(self, text: str) -> None:
        # A caller that closed stdout only wants the exit code.
        if text and sys.stdout is not None:
            # Paths may contain bytes that are not valid text: print them escaped.
            sys.stdout.buffer.write((text + "\n").encode("utf-8", "backslashreplace"))


def in_one_line(text: str) -> str:
    """Return a text with control characters made visible, so that no file name can control the terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def flush() -> bool:
    """Flush stdout and return whether that worked: the reader may be gone or the disk full."""
    is_taken = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            is_taken = False
    return is_taken


def _say(text: str) -> None:
    """Write to stderr; continue if it cannot be written."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except OSError:
        return


def _has_colour(stream: Any) -> bool:
    return is_terminal(stream) and "NO_COLOR" not in os.environ


def _to_json(document: dict[str, Any]) -> str:
    import json  # noqa: PLC0415 - help does not need it

    return json.dumps(document, ensure_ascii=False, default=str)
