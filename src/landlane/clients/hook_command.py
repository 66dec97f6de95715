"""The command line that a client's settings name as its hook."""

from __future__ import annotations

import os
import shlex
import sys

MARK = "hook_entry/client_hook.py"  # by this a command is known as ours, whichever interpreter it names

_BROKEN = "Landlane's hook cannot run, so nothing may be changed: run `landlane doctor` in a terminal"


def lean_path() -> str:
    """The file that every hook runs."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(package, *MARK.split("/"))


def hook_words(client: str, word: str = "") -> list[str]:
    """The hook as a list of words: this very interpreter, without its site packages."""
    return [sys.executable, "-I", "-S", lean_path(), client, *([word] if word else [])]


def hook_command(client: str, word: str = "", is_guard: bool = False) -> str:
    """The hook as a line of shell.

    A guard that cannot even start, because its interpreter or its file is gone, still refuses: most clients
    let everything pass on any exit code but 2.
    """
    line = shlex.join(hook_words(client, word))
    return f"{line} || {{ echo {shlex.quote(_BROKEN)} >&2; exit 2; }}" if is_guard else line


def server_words() -> list[str]:
    """What a client starts as its MCP server: this very interpreter, whatever folder it stands in."""
    return [sys.executable, "-I", "-m", "landlane", "mcp"]


def sdk_release() -> str:
    """The release of the MCP SDK that would be imported, by its folder's name; empty when there is none.

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


def is_ours(command: str) -> bool:
    """Whether a command in a client's settings is one of our hooks."""
    return MARK in command and "landlane" in command


SECONDS = 30  # longer than a hook of ours takes before it gives up by itself

OURS = "landlane/hook_entry/client_hook.py"  # enough for a command to be known as ours


def ours(_word: str, _is_guard: bool) -> str:
    """A stand-in for the hook's command, where only its being ours counts."""
    return OURS
