"""Run a command in this process, or let the resident run it when inside a sandbox."""

from __future__ import annotations

import os

from landlane.cli import command as here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.specs.table import Command


def run_command(command: Command, given: dict[str, Any]) -> int:
    """Run one command and return its exit code.

    The store cannot be opened inside a sandbox: there the resident runs the command, and only its answer is
    shown here.
    """
    if os.environ.get("LANDLANE_RESIDENT"):
        from landlane.cli.sandboxed.forward import forward, runs_here  # noqa: PLC0415 - only in a sandbox

        if not runs_here(command):
            return forward(command, given)
    return here.run_command(command, given)
