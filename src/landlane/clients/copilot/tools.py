"""The tools of Copilot CLI."""

from __future__ import annotations

from landlane.clients.model import ClientTools, PayloadKeys

TOOLS = ClientTools(
    edits={"edit": "path", "create": "path", "str_replace_editor": "path"},
    patches={"apply_patch": "input"},
    reads={"view": "path"},
    shells=("bash", "powershell", "write_bash", "write_powershell"),
    background="detach",
    harmless=("rg", "grep", "glob"),
    keys=PayloadKeys(
        session="sessionId",
        agent="agentId",
        agent_type="agentType",
        event="",
        tool="toolName",
        arguments="toolArgs",
    ),
)
