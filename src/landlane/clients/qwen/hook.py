"""Qwen Code: its tools, which are Gemini's, and its hooks, with the events and answers of Claude Code."""

from __future__ import annotations

from landlane.clients.hook_format import ClientHooks
from landlane.clients.model import ClientTools
from landlane.protocol.hook_events import EventKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


TOOLS = ClientTools(
    edits={"edit": "file_path", "write_file": "file_path", "notebook_edit": "notebook_path"},
    reads={"read_file": "file_path"},
    shells=("run_shell_command", "monitor"),
    folder="directory",
    background="is_background",
    background_shells=("monitor",),
    network=("web_fetch", "web_search"),
    agents=("agent", "task"),
    harmless=("list_directory", "search_file_content", "grep_search", "glob", "todo_write"),
)
_KINDS = {
    "SessionStart": EventKind.START,
    "UserPromptSubmit": EventKind.PROMPT,
    "PreToolUse": EventKind.BEFORE,
    "PostToolUse": EventKind.AFTER,
    "PostToolUseFailure": EventKind.AFTER,
    "Stop": EventKind.STOP,
    "SubagentStart": EventKind.CHILD_START,
    "SubagentStop": EventKind.CHILD_STOP,
    "SessionEnd": EventKind.END,
}


class _QwenHooks(ClientHooks):
    name = "qwen"
    tools = TOOLS
    before_tool = "PreToolUse"
    kinds = _KINDS
    context_kinds = (EventKind.START, EventKind.PROMPT, EventKind.AFTER)
    user_kinds = (EventKind.BEFORE,)

    def kind_of(self, name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> EventKind:
        kind = super().kind_of(name, payload, environment)
        # A prompt also comes with every tool result, without a text, right after the event for that.
        return EventKind.OTHER if kind == EventKind.PROMPT and not payload.get("prompt") else kind


HOOKS = _QwenHooks()
