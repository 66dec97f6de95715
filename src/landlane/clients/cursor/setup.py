"""Set up Cursor, by its documentation: our hooks in the checkout, and what could stop them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.cursor.hook import BEFORE_TOOL, KINDS
from landlane.clients.hook_command import SECONDS, placeholder_command
from landlane.clients.model import CLIENTS
from landlane.clients.setup_files import (
    ClientEnvironment,
    ClientFile,
    SetupProblem,
    hooks_file,
    server_file,
    server_table,
)

_TITLE = CLIENTS["cursor"].title
_HOOKS = ".cursor/hooks.json"
_SERVERS = ".cursor/mcp.json"

# Every event that Cursor documents. It drops the whole file if it does not know one name.
_KNOWN_EVENTS = frozenset(
    (
        *KINDS,
        *("subagentStart", "subagentStop", "beforeShellExecution", "afterShellExecution"),
        *("beforeMCPExecution", "afterMCPExecution", "beforeReadFile", "afterFileEdit"),
        *("beforeTabFileRead", "afterTabFileEdit", "afterAgentResponse", "afterAgentThought", "preCompact"),
    )
)


def wanted_files(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Return our hooks, in the file where Cursor reads them; the guard is called for every tool.

    Releases name their tools differently, so it has no matcher.
    """
    hooks: dict[str, list[dict[str, Any]]] = {}
    for event in KINDS:
        is_guard = event == BEFORE_TOOL
        closed = {"failClosed": True} if is_guard else {}
        hooks[event] = [{"command": command(event, is_guard), "timeout": SECONDS, **closed}]
    return hooks_file(_HOOKS, {"version": 1, "hooks": hooks})


def server_files(words: list[str]) -> tuple[ClientFile, ...]:
    """Return our server in the project's list."""
    return (server_file(_SERVERS, server_table(words)),)


def hook_files(env: ClientEnvironment) -> list[str]:
    """Return the files that Cursor reads hooks from, whether they exist or not."""
    return [env.path(_HOOKS), env.path(f"~/{_HOOKS}"), "/etc/cursor/hooks.json"]


def find_problems(env: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Return everything that keeps our hooks from being called, or from refusing when they fail."""
    del run
    hooks, problems = checks.read_settings(env.path(_HOOKS))
    content = wanted_files(placeholder_command)[0].content
    problems += checks.flat_layout_problems(_TITLE, _HOOKS, BEFORE_TOOL, hooks, content)
    if any(
        event == BEFORE_TOOL and hook.get("failClosed") is not True
        for event, hook, _ in checks.flat_hooks(hooks)
    ):
        what = f"{_HOOKS} lets edits pass when our hook fails"
        problems.append(SetupProblem(what=what, hint=checks.RUN_INIT, is_open=False))
    return problems + _why_dropped(hooks)


def _why_dropped(hooks: Mapping[str, Any]) -> list[SetupProblem]:
    """Return what makes Cursor drop the whole file without a word."""
    problems = [
        SetupProblem(
            what=f"{_HOOKS} names {name}, which {_TITLE} may not know and then drops the file",
            hint="take it out, unless your release of Cursor documents it",
        )
        for name in sorted(set(checks.table(hooks.get("hooks"))) - _KNOWN_EVENTS)
    ]
    if hooks and hooks.get("version") != 1:
        problems.append(SetupProblem(what=f"{_HOOKS} is not of version 1", hint='set "version" to 1'))
    return problems
