"""The command `hook`: answer a coding client's hook."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from landlane.errors import Malformed
from landlane.platform.terminal import is_terminal

_ANSWERING = "landlane.hook_entry.client_full_path"  # imported by name: cli does not depend on it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def hook(call: CommandCall, client: str, word: str) -> int:
    """Read the hook's input and print the answer the client expects."""
    if is_terminal(sys.stdin):
        raise Malformed(
            "hook reads what a coding client sends; it is not typed by hand",
            code="NO_PAYLOAD",
            hint="try the hooks that are set up: landlane doctor",
        )
    answer = import_module(_ANSWERING).answer
    payload = sys.stdin.buffer.read() if sys.stdin is not None else b""
    spoken = answer(client, word, payload, os.environ)
    call.terminal.write_raw(spoken.stdout, spoken.stderr)
    return spoken.exit_code
