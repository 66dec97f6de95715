"""`status --watch`: the frame of `status`, redrawn in place; keys pause everything or open an item."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty

from rich.console import Console
from rich.live import Live
from rich.text import Text

from landlane.cli.command import stop_on_signals
from landlane.cli.status import read_facts
from landlane.cli.status_frame import frame_lines
from landlane.cli.terminal import encodable, for_stream
from landlane.errors import Malformed
from landlane.platform.terminal import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.cli.status_frame import FrameLine

_REDRAW_SECONDS = 1.0
_KEYS = {
    "q": "quit", "p": "pause", "k": "up", "j": "down", "\r": "open", "\n": "open",
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x04": "quit", "": "quit",
}  # fmt: skip
_HELP = "q quit   p pause everything   ↑ ↓ select   Enter open"
_HELP_PAUSED = "q quit   p resume   ↑ ↓ select   Enter open"
_REASON = "paused in status --watch"


def watch(call: CommandCall) -> int:
    """Show the frame until `q` is pressed.

    Raises:
        Malformed: there is no terminal to draw on.
    """
    can_draw = is_terminal(sys.stdin) and is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if call.terminal.is_json or not can_draw:
        raise Malformed("--watch needs a terminal", code="NO_TERMINAL", hint="print it once: landlane status")
    stop_on_signals()
    viewer = _Viewer(call)
    while words := viewer.run():
        call.run(*words)
        if words[0] != "run":
            call.terminal.ask("\nEnter returns to status:")
    return 0


class _Viewer:
    """The frame on the terminal's second screen, and which of its items is selected."""

    def __init__(self, call: CommandCall) -> None:
        self._call = call
        self._console = Console(markup=False, emoji=False, highlight=False)
        self._lines: list[FrameLine] = []
        self._selected = ""  # the id of an item; it stays selected when its line moves
        self._is_paused = False

    def run(self) -> tuple[str, ...]:
        """Draw until a key ends it; return the words of the command to run, none to quit."""
        modes = termios.tcgetattr(sys.stdin)
        # A redirected stdout hides its encoding and its width, which the frame is made for.
        live = Live(
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        try:
            tty.setcbreak(sys.stdin)
            with live:
                while True:
                    self._read()
                    live.update(self._picture(), refresh=True)
                    key = _next_key()
                    if key == "quit":
                        return ()
                    if key == "pause":
                        return (
                            ("run", "resume")
                            if self._is_paused
                            else ("run", "pause", "--all", "--why", _REASON)
                        )
                    if key == "open" and self._selected:
                        return _command_for(self._selected, {item["id"] for item in self._items})
                    if key in ("up", "down"):
                        self._move(1 if key == "down" else -1)
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)

    def _read(self) -> None:
        facts = read_facts(self._call, None)
        self._lines = frame_lines(facts, self._call.wall_now())
        self._items = facts["inbox"]
        self._is_paused = facts["headline"]["workers_paused"]
        if self._selected not in self._openable():
            self._selected = next(iter(self._openable()), "")

    def _openable(self) -> list[str]:
        return [line.opens for line in self._lines if line.opens]

    def _move(self, by: int) -> None:
        items = self._openable()
        if items:
            at = items.index(self._selected) + by
            self._selected = items[min(max(at, 0), len(items) - 1)]

    def _picture(self) -> Text:
        """Return as much of the frame as fits, with the selected line in view, above a line of help."""
        room = max(self._console.size.height - 2, 1)
        painted = self._painted()
        at = next((index for index, line in enumerate(self._lines) if line.opens == self._selected), 0)
        first = max(min(at - room // 2, len(painted) - room), 0) if self._selected else 0
        help_text = encodable(_HELP_PAUSED if self._is_paused else _HELP, sys.stdout)
        shown = painted[first : first + room]
        for line in shown:
            line.truncate(self._console.size.width)
        return Text("\n").join([*shown, Text(""), Text(help_text, style="dim")])

    def _painted(self) -> list[Text]:
        text = "\n".join(line.text for line in self._lines)
        text = for_stream(text, sys.stdout)
        painted = [Text.from_ansi(line) for line in text.split("\n")]
        for line, shown in zip(self._lines, painted, strict=True):
            if self._selected and line.opens == self._selected:
                shown.stylize("reverse")
        return painted


def _command_for(id: str, waiting: set[str]) -> tuple[str, ...]:
    """Return the command that shows an item."""
    if id in waiting:
        return ("inbox", id)
    return ("queue", "show", id) if id.startswith("L") else ("task", "show", id)


def _next_key() -> str:
    """Return what the next key means; empty if none is pressed before the next redraw is due."""
    ready, _, _ = select.select([sys.stdin], [], [], _REDRAW_SECONDS)
    if not ready:
        return ""
    pressed = os.read(sys.stdin.fileno(), 32).decode(errors="replace")
    return _KEYS.get(pressed, "other")
