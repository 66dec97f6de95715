"""Codex: its tools, and its hooks."""

from __future__ import annotations

from landlane.clients.hook_format import ClientHooks, get_table, parse_answer, printable
from landlane.clients.model import ClientTools
from landlane.protocol.hook_events import HookEventKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.protocol.hook_events import HookOutput


TOOLS = ClientTools(
    edits={},
    patches={"apply_patch": "command"},
    shells=("Bash",),
    harmless=("update_plan", "view_image"),
)
_ANSWER_KEYS = {"decision", "reason", "hookSpecificOutput"}
_DECISION_KEYS = {"hookEventName", "permissionDecision", "permissionDecisionReason"}
_KINDS = {
    "SessionStart": HookEventKind.START,
    "UserPromptSubmit": HookEventKind.PROMPT,
    "PreToolUse": HookEventKind.BEFORE,
    "PostToolUse": HookEventKind.AFTER,
    "Stop": HookEventKind.STOP,
    "SubagentStart": HookEventKind.CHILD_START,
    "SubagentStop": HookEventKind.CHILD_STOP,
    "SessionEnd": HookEventKind.END,
}


class _CodexHooks(ClientHooks):
    name = "codex"
    tools = TOOLS
    before_tool = "PreToolUse"
    kinds = _KINDS
    unguarded_exit_code = 1
    # It keeps 2,500 tokens of context from a hook, at four bytes each, and moves the rest into a file.
    most_bytes = 9_900
    user_kinds = (HookEventKind.STOP, HookEventKind.CHILD_STOP)

    def deny(self, text: str) -> HookOutput:
        return super().deny(_without_full_stop(text))

    def refuse(self, event_name: str, text: str) -> HookOutput:
        return super().refuse(event_name, _without_full_stop(text))

    def is_denial(self, event_name: str, exit_code: int, stdout: str) -> bool:
        if exit_code or not super().is_denial(event_name, exit_code, stdout):
            return super().is_denial(event_name, exit_code, stdout)
        # With one key that it does not know, it ignores the answer.
        answer = parse_answer(stdout) or {}
        return (
            answer.keys() <= _ANSWER_KEYS and get_table(answer, "hookSpecificOutput").keys() <= _DECISION_KEYS
        )


def _without_full_stop(text: str) -> str:
    """Return a reason without its last full stop: Codex appends `. Command: …` to it."""
    return printable(text).removesuffix(".")


HOOKS = _CodexHooks()
