"""The commands that a client's settings name: our hook, and our MCP server."""

from __future__ import annotations

import os
import shlex
import sys

MARK = "hook_entry/client_hook.py"  # identifies a command as ours, whichever interpreter it names
OURS = f"landlane/{MARK}"
SECONDS = 30  # the time limit in a client's settings; our hook gives up and refuses before that

_BROKEN = "Landlane's hook cannot run, so nothing may be changed: run `landlane doctor` in a terminal"


def hook_script() -> str:
    """Return the path of the script that every hook runs."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(package, *MARK.split("/"))


def hook_words(client: str, event_name: str = "") -> list[str]:
    """Return the hook as a list of words: this interpreter, without its site packages."""
    return [sys.executable, "-I", "-S", hook_script(), client, *([event_name] if event_name else [])]


def hook_command(client: str, event_name: str = "", is_guard: bool = False) -> str:
    """Return the hook as a line of shell.

    A guard that cannot even start, because its interpreter or its file is gone, still refuses: most clients
    let everything pass on any exit code but 2.
    """
    line = shlex.join(hook_words(client, event_name))
    return f"{line} || {{ echo {shlex.quote(_BROKEN)} >&2; exit 2; }}" if is_guard else line


def placeholder_command(_event_name: str, _is_guard: bool) -> str:
    """Return a stand-in for the hook's command, for looking up hooks of ours in settings."""
    return OURS


def is_ours(command: str) -> bool:
    """Return whether a command in a client's settings is one of our hooks."""
    return MARK in command and "landlane" in command


def server_words() -> list[str]:
    """Return the command of our MCP server: this interpreter, wherever it is started."""
    return [sys.executable, "-I", "-m", "landlane", "mcp"]


def sdk_release() -> str:
    """Return the version of the MCP SDK that would be imported, by its folder's name; empty without one.

    Importing it, or asking for its version in the usual way, takes longer than a client should wait.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        if "mcp" in names:
            found = [name for name in names if name.startswith("mcp-") and name.endswith(".dist-info")]
            return found[0].removeprefix("mcp-").removesuffix(".dist-info") if found else "unknown"
    return ""
