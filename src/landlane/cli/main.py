"""The entry point of the command line: find the command, run its handler, exit with its code."""

from __future__ import annotations

import os
import sys

from landlane.cli.command import SIGINT, SIGNALLED
from landlane.cli.dispatch import run_command
from landlane.cli.fast_parse import read_call
from landlane.cli.terminal import flush


def run() -> None:
    """Run `landlane` as a console script."""
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = SIGNALLED + SIGINT
    if not flush():
        code = code or 1
    # Everything durable is on disk. Skipping the interpreter's teardown saves time, and leaving
    # the store open saves a checkpoint of its log: the next command reads the log as it is.
    os._exit(code)


def main(words: list[str]) -> int:
    """Run one call and return the exit code."""
    call = read_call(words) if "_LANDLANE_COMPLETE" not in os.environ else None
    if call is None:
        from landlane.cli.click_app import run_with_click  # noqa: PLC0415 - click is slow to load

        return run_with_click(words)
    return run_command(*call)
