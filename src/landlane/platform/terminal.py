"""Whether this process runs at a person's terminal, and not at one that a coding client opened."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What coding clients put into the environment of the commands that they run.
_CLIENTS = ("CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "QWEN_CODE", "OPENCODE", "CURSOR_AGENT")


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal; one that is closed, or was never there, is not."""
    return stream is not None and stream.isatty()


def why_no_terminal() -> str:
    """Return why this process is not at a person's terminal; empty when it is."""
    if client := next((name for name in _CLIENTS if name in os.environ), ""):
        return f"this terminal belongs to an agent: {client} is set"
    if not (os.isatty(0) and sys.stderr is not None and os.isatty(2)):
        return "nobody sits at a terminal here"
    return ""
