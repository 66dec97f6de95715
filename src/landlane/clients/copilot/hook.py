"""Copilot CLI: its tools, and its hooks. A payload does not name its event; the hook's command does."""

from __future__ import annotations

from landlane.clients.hook_format import (
    ClientHooks,
    answer_with,
    as_table,
    fail,
    get_text,
    parse_answer,
    parse_arguments,
    printable,
    unreadable,
)
from landlane.clients.model import ClientTools, PayloadKeys
from landlane.protocol.hook_events import HookEventKind, ToolAction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookEvent, HookOutput


TOOLS = ClientTools(
    edits={"edit": "path", "create": "path", "str_replace_editor": "path"},
    patches={"apply_patch": "input"},
    reads={"view": "path"},
    shells=("bash", "powershell", "write_bash", "write_powershell"),
    background="detach",
    harmless=("rg", "grep", "glob"),
    keys=PayloadKeys(session="sessionId", agent="agentId", event="", tool="toolName", arguments="toolArgs"),
)
_KINDS = {
    "sessionStart": HookEventKind.START,
    "userPromptSubmitted": HookEventKind.PROMPT,
    "preToolUse": HookEventKind.BEFORE,
    "postToolUse": HookEventKind.AFTER,
    "postToolUseFailure": HookEventKind.AFTER,
    "agentStop": HookEventKind.STOP,
    "subagentStart": HookEventKind.CHILD_START,
    "subagentStop": HookEventKind.CHILD_STOP,
    "sessionEnd": HookEventKind.END,
}


class _CopilotHooks(ClientHooks):
    name = "copilot"
    tools = TOOLS
    before_tool = "preToolUse"
    kinds = _KINDS

    def read(self, event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
        """Read a payload; a subagent sends its own id as the session, and its session as `parentAgentId`."""
        if not event_name:
            raise unreadable("the hook's command does not name its event")
        payload = as_table(payload, "the input")
        if payload.get("agentId") and (parent := get_text(payload, "parentAgentId")):
            payload = {**payload, "sessionId": parent}
        return super().read(event_name, payload, environment)

    def kind_of(self, name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEventKind:
        kind = super().kind_of(name, payload, environment)
        # The end of a subagent is reported by subagentStop.
        return HookEventKind.OTHER if kind == HookEventKind.STOP and payload.get("agentId") else kind

    def read_tool(self, payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
        name = get_text(payload, "toolName", is_needed=True)
        given = parse_arguments(payload, "toolArgs", "input")
        if name == "str_replace_editor" and given.get("command") == "view":
            return {"tool_name": name, "tool": ToolAction.OTHER}
        if name in TOOLS.patches and not given.get("input"):
            given = {**given, "input": given.get("patch")}
        fields = self.read_call(name, given, cwd)
        if fields["tool"] == ToolAction.SHELL:
            fields["command"] = fields["command"] or get_text(given, "input")
            fields["is_background"] = fields["is_background"] or given.get("mode") == "async"
        return fields

    def inform(self, event: HookEvent, text: str) -> HookOutput:
        del event
        return answer_with({"additionalContext": printable(text)})

    def refuse(self, event_name: str, text: str) -> HookOutput:
        """Refuse a tool call; other events cannot be refused."""
        return self.deny(text) if self.is_guard(event_name) else fail(text)

    def deny(self, text: str) -> HookOutput:
        return answer_with({"permissionDecision": "deny", "permissionDecisionReason": printable(text)})

    def is_denial(self, event_name: str, exit_code: int, stdout: str) -> bool:
        # Copilot refuses when a guard fails, but not on unreadable output.
        if not self.is_guard(event_name) or exit_code:
            return self.is_guard(event_name)
        return (parse_answer(stdout) or {}).get("permissionDecision") == "deny"


HOOKS = _CopilotHooks()
