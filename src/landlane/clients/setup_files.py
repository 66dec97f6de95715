"""A client's setup: where it runs, the files it reads, the commands of ours in them, and what is wrong."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from enum import StrEnum

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class FileForm(StrEnum):
    """How Landlane's content is kept in a file of a user."""

    JSON = "json"  # merged into a JSON document, whose comments and layout stay
    TEXT = "text"  # a marked block of a text file
    WHOLE = "whole"  # a file of our own
    TOML = "toml"  # a marked block with a table of a TOML file
    LINE = "line"  # one line of a text file
    IGNORED = "ignored"  # a marked block of a file whose comments begin with #
    NEW = "new"  # written only where there is no file, and the user's from then on
    OUTSIDE = "outside"  # a file that another program changes for us


JSON, TEXT, WHOLE, TOML, LINE, IGNORED, NEW, OUTSIDE = FileForm

MARK = "hook_entry/client_hook.py"  # identifies a command as ours, whichever interpreter it names
OURS = f"landlane/{MARK}"
SECONDS = 30  # the time limit in a client's settings; our hook gives up and refuses before that

_BROKEN = "Landlane's hook cannot run, so nothing may be changed: run `landlane doctor` in a terminal"


@value
class ClientEnvironment:
    """Where a client would run: a checkout, its user's home, the search path and all variables."""

    root: str
    home: str
    search_path: str
    variables: Mapping[str, str]

    def path(self, path: str) -> str:
        """Return the full path of one relative to the checkout or, after `~/`, to the home."""
        return os.path.join(self.home, path[2:]) if path.startswith("~/") else os.path.join(self.root, path)


def environment_at(root: str) -> ClientEnvironment:
    """Return where a client would run in a checkout, as this process sees it."""
    variables = dict(os.environ)
    home = os.path.expanduser("~")
    return ClientEnvironment(root=root, home=home, search_path=variables.get("PATH", ""), variables=variables)


@value
class ClientFile:
    """A file that a client reads, and what must be in it.

    `path` is relative to the checkout or, after `~/`, to the home. JSON content is merged: tables key by key,
    lists by adding what is ours, anything else only where nothing is set.
    """

    path: str
    form: FileForm
    content: Any
    why: str


def hooks_file(path: str, content: Any, form: FileForm = JSON) -> ClientFile:
    """Return a client's file with our hooks."""
    why = "hooks for"
    return ClientFile(path=path, form=form, content=content, why=why)


def server_file(path: str, content: Any, form: FileForm = JSON) -> ClientFile:
    """Return a client's file with our MCP server."""
    why = "MCP server for"
    return ClientFile(path=path, form=form, content=content, why=why)


@value
class SetupProblem:
    """Why a client's hooks do not protect, or not fully, and how to fix it."""

    what: str
    hint: str
    is_open: bool = True  # nothing is stopped at all; else only a failure of ours would let an edit pass


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
