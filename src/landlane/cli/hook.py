"""The command `hook`: answer a coding client's hook."""

from __future__ import annotations

import os
import sys
from importlib import import_module

_ANSWERING = "landlane.hook_entry.client_full_path"  # imported by name: cli does not depend on it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def hook(call: CommandCall, client: str, word: str) -> int:
    """Read the hook's input and print the answer the client expects."""
    answer = import_module(_ANSWERING).answer
    payload = sys.stdin.buffer.read() if sys.stdin is not None else b""
    spoken = answer(client, word, payload, os.environ)
    call.terminal.write_raw(spoken.stdout, spoken.stderr)
    return spoken.exit_code
