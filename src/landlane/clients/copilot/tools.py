"""The tools of Copilot CLI."""

from __future__ import annotations

from landlane.clients.model import ClientTools

TOOLS = ClientTools(
    edits={"edit": "path", "create": "path", "str_replace_editor": "path"},
    patches={"apply_patch": "input"},
    reads={"view": "path"},
    shells=("bash", "powershell", "write_bash", "write_powershell"),
    background="detach",
    harmless=("rg", "grep", "glob"),
)
