"""Make a tool call as a client would announce it to its hook, to test whether it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from landlane.clients.model import CLIENTS, ClientTools
from landlane.clients.registry import hooks_of
from landlane.protocol.hook_events import ToolAction
from landlane.values import value

_PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch\n"


@value
class Canary:
    """What the client writes to its hook, and the event and variables that it gives the hook."""

    event_name: str
    payload: Mapping[str, Any]
    variables: Mapping[str, str]


def make_canary(client: str, kind: str, cwd: str, path: str, session: str, agent: str = "") -> Canary:
    """Return an edit of a file, or a shell command that writes it, in a session or by its subagent."""
    hooks = hooks_of(client)
    tools, event_name = hooks.tools, hooks.before_tool
    keys = tools.keys
    name, arguments = tools.shells[0], {"command": f"echo x > {path}"}
    if kind == ToolAction.EDIT:
        name, arguments = _edit(tools, path)
    payload: dict[str, Any] = {keys.session: session, "cwd": cwd, "tool_use_id": "canary"}
    payload |= {
        keys.tool: name,
        keys.arguments: arguments,
        **({keys.event: event_name} if keys.event else {}),
    }
    if agent and client == "copilot":  # a subagent is a session of its own there
        payload |= {keys.session: agent, "parentAgentId": session}
    if agent:
        payload[keys.agent] = agent
    variable = CLIENTS[client].project_variable
    variables = {variable: cwd} if variable else {}
    # The plugin for opencode starts the hook without an event.
    return Canary(event_name="" if client == "opencode" else event_name, payload=payload, variables=variables)


def _edit(tools: ClientTools, path: str) -> tuple[str, dict[str, str]]:
    name = next(iter(tools.edits or tools.patches))
    return name, {tools.edits[name]: path} if tools.edits else {tools.patches[name]: _PATCH.format(path)}
