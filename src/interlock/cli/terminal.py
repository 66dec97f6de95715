"""The only writer to the terminal: the answer to stdout, everything else to stderr, colour only for eyes."""

from __future__ import annotations

import os
import sys

from interlock.errors import InterlockError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Terminal:
    """Where a command's answer goes."""

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json

    def answer(self, document: dict[str, Any], text: str = "") -> None:
        """The one answer of a command: JSON for programs, or text for people."""
        self._out(_to_json(document) if self.is_json else text)

    def line(self, text: str) -> None:
        """One line of an answer that has no end, such as the followed journal."""
        self._out(text)
        sys.stdout.flush()

    def table(self, title: str, columns: list[str], rows: list[list[str]]) -> str:
        """A table for people."""
        if not rows:
            return title
        if sys.stdout.isatty():
            return _rich_table(title, columns, rows)
        widths = [max(len(row[index]) for row in [columns, *rows]) for index in range(len(columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                 for row in [columns, *rows]]
        return "\n".join([title, *lines])

    def note(self, text: str) -> None:
        """Something by the way, for people who watch."""
        if not self.is_json:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def confirm(self, question: str) -> bool:
        """Ask the person at the terminal; where nobody can answer, the plan that was shown is carried out."""
        if self.is_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return True
        sys.stderr.write(f"{question} [Y/n] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("", "y", "yes")

    def fail(self, error: InterlockError) -> int:
        """Say what went wrong and what to do; tells the exit code."""
        document = {"ok": False, "code": error.code, "message": error.message, "hint": error.hint, **error.facts}
        if self.is_json:
            self._out(_to_json(document))
        else:
            self.complain(error.message, error.hint, error.code)
        return error.exit_code

    def complain(self, message: str, hint: str, code: str) -> None:
        """An error for people: what happened, what to do, and the code to search for."""
        red, dim, plain = ("\x1b[31m", "\x1b[2m", "\x1b[0m") if self._has_colour(sys.stderr) else ("", "", "")
        sys.stderr.write(f"{red}interlock:{plain} {message} {dim}[{code}]{plain}\n")
        if hint:
            sys.stderr.write(f"{dim}hint:{plain} {hint}\n")

    def _has_colour(self, stream: Any) -> bool:
        return stream.isatty() and "NO_COLOR" not in os.environ

    def _out(self, text: str) -> None:
        if text:
            # Paths may hold bytes that are no text: show them escaped rather than fail.
            sys.stdout.buffer.write((text + "\n").encode("utf-8", "backslashreplace"))


def _to_json(document: dict[str, Any]) -> str:
    import json  # noqa: PLC0415

    return json.dumps(document, ensure_ascii=False, default=str)


def _rich_table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    import io  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415 - only people at a terminal wait for it
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    target = io.StringIO()
    Console(file=target, force_terminal=True, soft_wrap=True).print(table)
    return target.getvalue().rstrip("\n")
