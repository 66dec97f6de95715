"""The tools of Codex, under the names that it gives its hooks."""

from __future__ import annotations

from landlane.clients.model import ClientTools

TOOLS = ClientTools(
    edits={},
    patches={"apply_patch": "command"},
    shells=("Bash",),
    harmless=("update_plan", "view_image"),
)
