"""Qwen Code: its tools, which are Gemini's, and its hooks, with the events and answers of Claude Code."""

from __future__ import annotations

from landlane.clients.hook_format import ClientHooks
from landlane.clients.model import ClientTools
from landlane.protocol.hook_events import HookEventKind

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
    "SessionStart": HookEventKind.START,
    "UserPromptSubmit": HookEventKind.PROMPT,
    "PreToolUse": HookEventKind.BEFORE,
    "PostToolUse": HookEventKind.AFTER,
    "PostToolUseFailure": HookEventKind.AFTER,
    "Stop": HookEventKind.STOP,
    "SubagentStart": HookEventKind.CHILD_START,
    "SubagentStop": HookEventKind.CHILD_STOP,
    "SessionEnd": HookEventKind.END,
}


class _QwenHooks(ClientHooks):
    name = "qwen"
    tools = TOOLS
    before_tool = "PreToolUse"
    kinds = _KINDS
    context_kinds = (HookEventKind.START, HookEventKind.PROMPT, HookEventKind.AFTER)
    user_kinds = (HookEventKind.BEFORE,)

    def kind_of(self, name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEventKind:
        kind = super().kind_of(name, payload, environment)
        # A prompt also comes with every tool result, without a text, right after the event for that.
        return HookEventKind.OTHER if kind == HookEventKind.PROMPT and not payload.get("prompt") else kind


HOOKS = _QwenHooks()
