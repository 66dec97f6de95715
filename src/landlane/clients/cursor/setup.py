"""How Cursor is set up, by its documentation: our hooks in the checkout, and what could stop them."""

from __future__ import annotations

from landlane.clients import hook_command
from landlane.clients import setup_checks as conditions
from landlane.clients.cursor.hook import BEFORE_TOOL, KINDS, TITLE
from landlane.clients.detect import MEND, is_there, located, program, release
from landlane.clients.hook_command import SECONDS
from landlane.clients.setup_model import JSON, Canary, ClientFile, SetupProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.clients.setup_model import ClientEnvironment


__all__ = ["TITLE", "canary", "hook_files", "is_used", "mcp_wanted", "troubles", "version", "wanted"]

HOOKS = ".cursor/hooks.json"
SERVERS = ".cursor/mcp.json"

_PROGRAMS = ("cursor-agent", "cursor")

# Every event that Cursor documents. One name that it does not know makes it drop the whole file.
_KNOWN = frozenset(
    (
        *KINDS,
        "subagentStart",
        "subagentStop",
        "beforeShellExecution",
        "afterShellExecution",
        "beforeMCPExecution",
        "afterMCPExecution",
        "beforeReadFile",
        "afterFileEdit",
        "beforeTabFileRead",
        "afterTabFileEdit",
        "afterAgentResponse",
        "afterAgentThought",
        "preCompact",
    )
)


def is_used(place: ClientEnvironment) -> bool:
    """Whether Cursor is on this machine or in this checkout."""
    return any(is_there(place, name, ".cursor", "~/.cursor") for name in _PROGRAMS)


def version(place: ClientEnvironment, run: Callable[[list[str]], str]) -> str:
    """The release of Cursor that would run here; empty when none would."""
    found = next(filter(None, (program(place, name) for name in _PROGRAMS)), "")
    return release(run([found, "--version"])) if found else ""


def wanted(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Our hooks, where Cursor reads them. The guard fires for every tool: releases name them differently."""
    hooks: dict[str, list[dict[str, Any]]] = {}
    for event in KINDS:
        is_guard = event == BEFORE_TOOL
        closed = {"failClosed": True} if is_guard else {}
        hooks[event] = [{"command": command(event, is_guard), "timeout": SECONDS, **closed}]
    content = {"version": 1, "hooks": hooks}
    why = "sessions begin, edits are checked, messages arrive"
    return (ClientFile(path=HOOKS, form=JSON, content=content, why=why),)


def mcp_wanted(words: list[str]) -> tuple[ClientFile, ...]:
    """Our server in the project's list."""
    server = {"mcpServers": {"landlane": {"command": words[0], "args": words[1:]}}}
    why = "its model can claim, take tasks and land through tools"
    return (ClientFile(path=SERVERS, form=JSON, content=server, why=why),)


def hook_files(place: ClientEnvironment) -> list[str]:
    """Return the files that Cursor reads hooks from, whether they exist or not."""
    return [located(place, HOOKS), located(place, f"~/{HOOKS}"), "/etc/cursor/hooks.json"]


def troubles(place: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Everything that keeps our hooks from firing, or from refusing when they fail."""
    del run
    hooks, found = conditions.read_settings(located(place, HOOKS))
    content = wanted(hook_command.ours)[0].content
    found += conditions.flat_troubles(TITLE, HOOKS, BEFORE_TOOL, hooks, content)
    if any(
        event == BEFORE_TOOL and hook.get("failClosed") is not True
        for event, hook, _ in conditions.flat_hooks(hooks)
    ):
        found.append(
            SetupProblem(what=f"{HOOKS} lets edits pass when our hook fails", hint=MEND, is_open=False)
        )
    return found + _dropped(hooks)


def _dropped(hooks: Mapping[str, Any]) -> list[SetupProblem]:
    """What makes Cursor drop the whole file without a word."""
    unknown = sorted(set(conditions.table(hooks.get("hooks"))) - _KNOWN)
    found = [
        SetupProblem(
            what=f"{HOOKS} names {name}, which {TITLE} may not know and then drops the file",
            hint="take it out, unless your release of Cursor documents it",
        )
        for name in unknown
    ]
    if hooks and hooks.get("version") != 1:
        found.append(SetupProblem(what=f"{HOOKS} is not of version 1", hint='set "version" to 1'))
    return found


def canary(kind: str, cwd: str, path: str, session: str, agent: str) -> Canary:
    """An edit or a shell call as Cursor would announce it. It does not tell subagents apart."""
    del agent
    tools: dict[str, tuple[str, dict[str, Any]]] = {
        "edit": ("Write", {"file_path": path, "content": "b"}),
        "shell": ("Shell", {"command": f"echo x > {path}", "working_directory": cwd}),
    }
    name, given = tools[kind]
    payload: dict[str, Any] = {
        "conversation_id": session,
        "generation_id": "canary",
        "hook_event_name": BEFORE_TOOL,
        "workspace_roots": [cwd],
        "cwd": cwd,
        "tool_name": name,
        "tool_input": given,
        "tool_use_id": "canary",
    }
    return Canary(word=BEFORE_TOOL, payload=payload, environment={"CURSOR_PROJECT_DIR": cwd})
