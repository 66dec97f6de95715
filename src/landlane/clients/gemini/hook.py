"""Gemini CLI: its tools, and its hooks. Their payloads do not tell subagents apart from their session."""

from __future__ import annotations

from landlane.clients.hook_format import ClientHooks, absolute_path, block, get_table, is_refusal
from landlane.clients.model import ClientTools
from landlane.protocol.hook_events import HookEventKind, ToolAction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookOutput


_READS_MANY = "read_many_files"
_GLOB = frozenset("*?[{!")

TOOLS = ClientTools(
    edits={"replace": "file_path", "write_file": "file_path"},
    reads={"read_file": "file_path", _READS_MANY: "include"},
    shells=("run_shell_command",),
    folder="dir_path",
    background="is_background",
    network=("web_fetch", "google_web_search"),
    agents=("invoke_agent",),
    harmless=("list_directory", "search_file_content", "grep_search", "glob"),
)
_KINDS = {
    "SessionStart": HookEventKind.START,
    "BeforeAgent": HookEventKind.PROMPT,
    "BeforeTool": HookEventKind.BEFORE,
    "AfterTool": HookEventKind.AFTER,
    "AfterAgent": HookEventKind.STOP,
    "SessionEnd": HookEventKind.END,
}


class _GeminiHooks(ClientHooks):
    name = "gemini"
    tools = TOOLS
    before_tool = "BeforeTool"
    kinds = _KINDS
    context_kinds = (HookEventKind.START, HookEventKind.PROMPT, HookEventKind.AFTER)
    user_kinds = (HookEventKind.BEFORE,)

    def read_tool(self, payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
        if payload.get("tool_name") != _READS_MANY:
            return super().read_tool(payload, cwd)
        listed: Any = get_table(payload, "tool_input").get("include")
        named = [str(path) for path in listed if path] if listed.__class__ is list else []
        paths = tuple(absolute_path(path, cwd) for path in named if _GLOB.isdisjoint(path))
        return {"tool_name": _READS_MANY, "tool": ToolAction.READ, "paths": paths}

    def deny(self, text: str) -> HookOutput:
        return block(text)

    def is_denial(self, event_name: str, exit_code: int, stdout: str) -> bool:
        # Any exit code from 2 on refuses, 1 does not.
        return self.is_guard(event_name) and (exit_code >= 2 or (exit_code == 0 and is_refusal(stdout)))


HOOKS = _GeminiHooks()
