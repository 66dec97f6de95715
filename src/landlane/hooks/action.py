"""Describe what a client session does now, from the event that its hook reports: `editing src/api.py`."""

from __future__ import annotations

import os

from landlane.hooks.edit import real_path
from landlane.protocol.hook_events import HookEventKind, ToolAction, is_own_tool
from landlane.sessions.tool_calls import mask_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.protocol.hook_events import HookEvent

_BY_KIND = {
    HookEventKind.START: "starting",
    HookEventKind.CHILD_START: "starting",
    HookEventKind.PROMPT: "reading a prompt",
    HookEventKind.STOP: "finished its turn",
}


def describe_action(root: str, event: HookEvent) -> str:
    """Return what the session does; empty if the event does not show it. `root` is that of the checkout."""
    if event.kind not in (HookEventKind.BEFORE, HookEventKind.AFTER):
        return _BY_KIND.get(event.kind, "")
    if event.tool == ToolAction.SHELL:
        return mask_command(event.command)
    if event.tool in (ToolAction.EDIT, ToolAction.READ) and event.paths:
        verb = "editing" if event.tool == ToolAction.EDIT else "reading"
        return action_text(verb, _short(root, real_path(event, event.paths[0])), len(event.paths))
    return "" if is_own_tool(event.tool_name) or not event.tool_name else f"using {event.tool_name}"


def action_text(verb: str, path: str, number: int) -> str:
    """Return an action on paths; `hook_entry/client_fast_path.py` writes the same text."""
    return f"{verb} {path}" + (f" and {number - 1} more" if number > 1 else "")


def _short(root: str, path: str) -> str:
    """Return a path inside the checkout, or the name of a file outside it."""
    inside = os.path.relpath(path, os.path.realpath(root))
    return os.path.basename(path) if inside.startswith("..") else inside
