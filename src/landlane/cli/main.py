"""The entry point of the command line: parse the words, run the command, exit with its code."""

from __future__ import annotations

import os
import sys

from landlane.cli.parse import parse
from landlane.cli.terminal import Terminal, flush
from landlane.errors import Malformed
from landlane.version import __version__

_INTERRUPTED = 130  # what a shell reports after Ctrl-C


def run() -> None:
    """Run `landlane` as a console script."""
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if not flush():
        code = code or 1
    # Everything durable is on disk. Skipping the interpreter's teardown saves time, and leaving
    # the store open saves a checkpoint of its log: the next command reads the log as it is.
    os._exit(code)


def main(words: list[str]) -> int:
    """Run one call and return the exit code.

    The store cannot be opened inside a sandbox: there the resident runs the command, and only its answer is
    shown here.
    """
    if words == ["--version"]:
        Terminal().answer({}, f"landlane {__version__}")
        return 0
    try:
        call = parse(words)
    except Malformed as error:
        return Terminal(is_json=_wants_json(words)).fail(error)
    if os.environ.get("LANDLANE_RESIDENT"):
        from landlane.cli.sandboxed.forward import forward, runs_here  # noqa: PLC0415 - only in a sandbox

        if not runs_here(call.command):
            return forward(call.command, call.given)
    from landlane.cli.command import run_command  # noqa: PLC0415 - a malformed call does not need it

    return run_command(call.command, call.given)


def _wants_json(words: list[str]) -> bool:
    """Return whether --json was given before `--`; after it, the option belongs to the command to run."""
    return "--json" in (words[: words.index("--")] if "--" in words else words)
