"""Claude Code: its tools, and its hooks."""

from __future__ import annotations

from landlane.clients.hook_format import ClientHooks
from landlane.clients.model import ClientTools
from landlane.protocol.hook_events import HookEventKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_AGENTS = ("Agent", "Task")

TOOLS = ClientTools(
    edits={
        "Edit": "file_path",
        "Write": "file_path",
        "MultiEdit": "file_path",
        "NotebookEdit": "notebook_path",
    },
    reads={"Read": "file_path", "NotebookRead": "notebook_path"},
    shells=("Bash", "Monitor", "PowerShell"),
    background="run_in_background",
    background_shells=("Monitor",),
    network=("WebFetch", "WebSearch"),
    agents=_AGENTS,
    harmless=(
        *("Glob", "Grep", "LS", "Skill", "TaskCreate", "TaskList", "TaskUpdate", "TodoWrite", "ToolSearch"),
        *_AGENTS,
    ),
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
    "ConfigChange": HookEventKind.SETTINGS,
}


class _ClaudeHooks(ClientHooks):
    name = "claude"
    tools = TOOLS
    before_tool = "PreToolUse"
    kinds = _KINDS
    other_guards = ("ConfigChange",)
    unguarded_exit_code = 1  # 2 would refuse at every event, also the end of a turn and a prompt
    most_bytes = 9_900  # of more than 10,000 characters the model sees only the beginning
    user_kinds = (HookEventKind.STOP, HookEventKind.CHILD_STOP, HookEventKind.SETTINGS)

    def kind_of(self, name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEventKind:
        # Copilot CLI also runs the hooks in Claude's settings, beside its own. Taken for Claude, one session
        # of Copilot would be two that refuse each other's edits.
        session = environment.get("CLAUDE_CODE_SESSION_ID")
        if "COPILOT_PROJECT_DIR" in environment and session != payload.get("session_id"):
            return HookEventKind.OTHER
        return super().kind_of(name, payload, environment)


HOOKS = _ClaudeHooks()
