"""Values of a client's setup: where it runs, the files it reads, its hooks in them, and what is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from landlane.clients.hook_command import SECONDS
from landlane.clients.model import ClientTools
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


JSON = "json"  # merged into a JSON document, whose comments and layout stay
TEXT = "text"  # a marked block of a text file
WHOLE = "whole"  # a file of our own
TOML = "toml"  # a marked block with a table of a TOML file


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
    form: str
    content: Any
    why: str


def hooks_file(path: str, content: Any, form: str = JSON) -> tuple[ClientFile]:
    """Return a client's only file with our hooks."""
    why = "sessions begin, edits are checked, messages arrive"
    return (ClientFile(path=path, form=form, content=content, why=why),)


def server_file(path: str, content: Any, form: str = JSON) -> ClientFile:
    """Return a client's file with our MCP server."""
    why = "its model can claim, take tasks and land through tools"
    return ClientFile(path=path, form=form, content=content, why=why)


@value
class SetupProblem:
    """Why a client's hooks do not protect, or not fully, and how to fix it."""

    what: str
    hint: str
    is_open: bool = True  # nothing is stopped at all; else only a failure of ours would let an edit pass


@value
class HookEntry:
    """One hook in the layout that several clients share; `extra` holds what only one client knows."""

    event: str
    command: str
    timeout: int
    matcher: str | None = None
    extra: Mapping[str, Any] | None = None


def hooks_table(entries: Iterable[HookEntry]) -> dict[str, Any]:
    """Return the table of hooks for the settings of these clients."""
    hooks: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        hook = {"type": "command", "command": entry.command, "timeout": entry.timeout, **(entry.extra or {})}
        group: dict[str, Any] = {} if entry.matcher is None else {"matcher": entry.matcher}
        hooks.setdefault(entry.event, []).append({**group, "hooks": [hook]})
    return {"hooks": hooks}


def guarded_entries(
    kinds: Iterable[str],
    before_tool: str,
    tools: ClientTools,
    command: Callable[[str, bool], str],
    unguarded: str = "",
) -> list[HookEntry]:
    """Return a hook for each event, with time limits in milliseconds; before a tool it guards.

    A second one before reading tools records what is read, so that an edit of an outdated version is noticed.
    `unguarded` is added to the commands that guard nothing.
    """

    def entry(event: str, matcher: str | None = None) -> HookEntry:
        line = command(event, False) + unguarded
        return HookEntry(event=event, command=line, timeout=SECONDS * 1000, matcher=matcher)

    guard = replace(entry(before_tool, "|".join(tools.guarded)), command=command(before_tool, True))
    entries = [guard if event == before_tool else entry(event) for event in kinds]
    return [*entries, entry(before_tool, "|".join(tools.reads))]


def server_table(words: list[str], **more: Any) -> dict[str, Any]:
    """Return our MCP server in the table that most clients read."""
    return {"mcpServers": {"landlane": {"command": words[0], "args": words[1:], **more}}}
