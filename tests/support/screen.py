"""A terminal without a window: what a program that redraws lines leaves on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING

from tests.support.shell import LANDLANE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.shell import Shell

_SEQUENCE = re.compile(r"\x1b\[(\d*)([A-Za-z])")
LIMIT_SECONDS = 100.0


class Screen:
    """Understands new lines, returns, and the sequences that move up and down and clear."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        """Show a text."""
        position = 0
        while position < len(text):
            found = _SEQUENCE.match(text, position)
            if found:
                self._control(int(found[1] or 0), found[2])
                position = found.end()
                continue
            self._show(text[position])
            position += 1

    def _show(self, letter: str) -> None:
        if letter == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        elif letter == "\r":
            self.column = 0
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + letter + line[self.column + 1 :]
            self.column += 1

    def _control(self, number: int, kind: str) -> None:
        if kind in "EF":
            self.row += number if kind == "E" else -number
            assert self.row >= 0, "it moved above the first line"
            self.column = 0
        elif kind == "J":
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        elif kind == "K":
            self.lines[self.row] = ""
        else:
            assert kind == "m", f"an unknown sequence: {kind}"

    @property
    def text(self) -> str:
        """All lines, without empty ones at the end."""
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")


class TerminalRun:
    """A command at a terminal of 100 columns, and what its screen shows."""

    def __init__(self, shell: Shell, *words: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        variables = {**os.environ, **shell.environment, "TERM": "xterm", "PYTHONUTF8": "1", **environment}
        self.process = subprocess.Popen(
            [LANDLANE, *words],
            cwd=shell.folder,
            env=variables,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = Screen()
        self.output = ""
        self._bytes = b""

    def _read(self, seconds: float) -> bool:
        """Read what comes next; return whether there may be more."""
        if not select.select([self._master], [], [], max(seconds, 0))[0]:
            return True
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            return False  # the terminal was closed
        self._bytes += data
        text = self._bytes.decode(errors="ignore")
        self._bytes = b"" if text.encode() == self._bytes else self._bytes[len(text.encode()) :]
        self.output += text
        self.screen.feed(text)
        return bool(data)

    def wait_for(self, is_so: Callable[[str], object]) -> str:
        """Return the screen as soon as it is so."""
        give_up_at = time.monotonic() + LIMIT_SECONDS
        while not is_so(self.screen.text):
            assert time.monotonic() < give_up_at, self.screen.text
            assert self._read(give_up_at - time.monotonic()), self.screen.text
        return self.screen.text

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and the last screen."""
        give_up_at = time.monotonic() + LIMIT_SECONDS
        while self._read(give_up_at - time.monotonic()):
            assert time.monotonic() < give_up_at, self.screen.text
        os.close(self._master)
        return self.process.wait(60), self.screen.text
