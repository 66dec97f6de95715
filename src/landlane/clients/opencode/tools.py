"""The tools of opencode."""

from __future__ import annotations

from landlane.clients.model import ClientTools

TOOLS = ClientTools(
    edits={"edit": "filePath", "write": "filePath", "multiedit": "filePath"},
    patches={"patch": "patchText", "apply_patch": "patchText"},
    reads={"read": "filePath"},
    shells=("bash", "shell"),
    folder="workdir",
    network=("webfetch", "websearch"),
    agents=("task",),
    harmless=("grep", "glob"),
)
