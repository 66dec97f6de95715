"""Whether a person sits at the terminal: some things only a person may decide, whatever an agent's role."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.cli.main import Desk

# What coding clients put into the environment of the commands that they run.
_CLIENTS = ("CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "QWEN_CODE", "OPENCODE", "CURSOR_AGENT")


def why_no_person(desk: Desk) -> str:
    """Why this call is not that of a person at a terminal; empty when it is.

    Raises:
        InterlockError: it belongs to an agent whose session is over, or another's.
    """
    from interlock.operations.sessions import known_session

    caller = desk.caller()
    known = known_session(desk.house.context, caller)
    if caller.name or caller.session_text or caller.agent_variable:
        return "--as, INTERLOCK_SESSION and INTERLOCK_AGENT are for agents"
    if known is not None and known.session.kind != "person":
        return f"this is the session of {known.session.agent}, an agent"
    if known is not None and known.session.role:
        return f"{known.session.agent} has the role {known.session.role}, and no role decides this"
    if client := next((name for name in _CLIENTS if name in os.environ), ""):
        return f"this terminal belongs to an agent: {client} is set"
    if not (os.isatty(0) and sys.stderr is not None and os.isatty(2)):
        return "nobody sits at a terminal here"
    return ""
