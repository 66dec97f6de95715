"""Whether a person sits here: a terminal on both sides, and none that belongs to a coding client."""

from __future__ import annotations

import os
import sys

# What coding clients put into the environment of the commands that they run.
_CLIENTS = ("CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "QWEN_CODE", "OPENCODE", "CURSOR_AGENT")


def why_no_terminal() -> str:
    """Why this process is not at the terminal of a person; empty when it is."""
    if client := next((name for name in _CLIENTS if name in os.environ), ""):
        return f"this terminal belongs to an agent: {client} is set"
    if not (os.isatty(0) and sys.stderr is not None and os.isatty(2)):
        return "nobody sits at a terminal here"
    return ""
