"""The command that answers a coding client's hook by hand."""

from __future__ import annotations

import os
import sys
from importlib import import_module

_ANSWERING = "landlane.hook_entry.client_full_path"  # a door beside this one, known by its name alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def hook(call: CommandCall, client: str, word: str) -> int:
    """Read what the client says, and answer as it expects."""
    answer = import_module(_ANSWERING).answer
    payload = sys.stdin.buffer.read() if sys.stdin is not None else b""
    spoken = answer(client, word, payload, os.environ)
    call.terminal.speak(spoken.stdout, spoken.stderr)
    return spoken.exit_code
