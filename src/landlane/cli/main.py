"""The command line's entry: finds the command, runs its handler, and ends with the right exit code."""

from __future__ import annotations

import os
import sys

from landlane.cli.command import SIGINT, SIGNALLED
from landlane.cli.dispatch import run_command
from landlane.cli.fast_parse import read_call
from landlane.cli.terminal import flush


def run() -> None:
    """What `landlane` starts."""
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = SIGNALLED + SIGINT
    if not flush():
        code = code or 1
    # Everything durable is on the disk. Leaving without the interpreter's tear-down saves time, and leaving
    # the store open saves emptying its log: the next command reads it where it is.
    os._exit(code)


def main(words: list[str]) -> int:
    """Run one call; tells the exit code."""
    call = read_call(words) if "_LANDLANE_COMPLETE" not in os.environ else None
    if call is None:
        from landlane.cli.click_app import run_with_click  # noqa: PLC0415 - click is slow to load

        return run_with_click(words)
    return run_command(*call)
