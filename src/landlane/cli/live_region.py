"""Lines at the bottom of a terminal that are replaced in place; other output scrolls above them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

_CLEAR_BELOW = "\x1b[J"
_CLEAR_LINE = "\x1b[2K"
_FEWEST_ROWS = 4


class LiveRegion:
    """Draws lines below everything that was printed; only lines that changed are written again.

    The cursor stays at the start of the line below the region, so that other output cannot damage a row.
    """

    def __init__(self, stream: TextIO, encode: Callable[[str], str]) -> None:
        self._stream = stream
        self._encode = encode  # to colours and characters that the terminal has
        self._lines: list[str] = []

    def draw(self, lines: Sequence[str]) -> None:
        """Replace the region; lines must be shorter than the terminal is wide."""
        new = [self._encode(line) for line in self._fitting(lines)]
        if len(new) != len(self._lines):
            self._write(self._erase() + "".join(f"{line}\n" for line in new))
        else:
            self._write("".join(self._rewrite(row, line) for row, line in enumerate(new)))
        self._lines = new

    def print_above(self, text: str) -> None:
        """Print text above the region, where it stays."""
        kept = "".join(f"{line}\n" for line in self._lines)
        self._write(f"{self._erase()}{self._encode(text)}\n{kept}")

    def remove(self) -> None:
        """Remove the region."""
        self._write(self._erase())
        self._lines = []

    def _fitting(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines that fit on the screen: the last ones, since the end has the totals."""
        try:
            rows = os.get_terminal_size(self._stream.fileno()).lines
        except OSError:
            return lines
        return lines[-max(rows - 1, _FEWEST_ROWS) :]

    def _erase(self) -> str:
        """Return what moves the cursor to the first line of the region and clears everything below."""
        up = f"\x1b[{len(self._lines)}F" if self._lines else "\r"
        return f"{up}{_CLEAR_BELOW}"

    def _rewrite(self, row: int, line: str) -> str:
        if line == self._lines[row]:
            return ""
        distance = len(self._lines) - row
        return f"\x1b[{distance}F{_CLEAR_LINE}{line}\x1b[{distance}E"

    def _write(self, text: str) -> None:
        """Write to the terminal; if it was closed, the work continues without it."""
        try:
            if text:
                self._stream.write(text)
                self._stream.flush()
        except OSError:
            self._lines = []
