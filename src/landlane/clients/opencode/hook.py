"""opencode: its tools, and the calls of our plugin for it; both ends are ours."""

from __future__ import annotations

from landlane.clients.hook_format import ClientHooks, answer_with, fail, parse_answer, printable
from landlane.clients.model import ClientTools
from landlane.protocol.hook_events import HookEventKind, HookOutput, HookVerdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookAnswer, HookEvent


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
_CHILD_KINDS = {
    HookEventKind.START: HookEventKind.CHILD_START,
    HookEventKind.STOP: HookEventKind.CHILD_STOP,
    HookEventKind.END: HookEventKind.CHILD_STOP,
}
_KINDS = {
    "session.created": HookEventKind.START,
    "chat.message": HookEventKind.PROMPT,
    "tool.execute.before": HookEventKind.BEFORE,
    "tool.execute.after": HookEventKind.AFTER,
    "session.idle": HookEventKind.STOP,
    "session.deleted": HookEventKind.END,
}


class _OpencodeHooks(ClientHooks):
    name = "opencode"
    tools = TOOLS
    before_tool = "tool.execute.before"
    kinds = _KINDS

    def kind_of(self, name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEventKind:
        kind = super().kind_of(name, payload, environment)
        return _CHILD_KINDS.get(kind, kind) if payload.get("agent_id") else kind

    def render(self, event: HookEvent, answer: HookAnswer) -> HookOutput:
        """Write an answer for the plugin; opencode cannot be held, so its next message carries the text."""
        if answer.verdict == HookVerdict.DENY and event.kind == HookEventKind.BEFORE:
            return answer_with({"deny": printable(answer.text)})
        return answer_with({"tell": printable(answer.text)}) if answer.text else HookOutput()

    def refuse(self, event_name: str, text: str) -> HookOutput:
        del event_name  # the plugin takes a failure at a tool call for a no, and ignores any other
        return fail(text, 2)

    def is_denial(self, event_name: str, exit_code: int, stdout: str) -> bool:
        del event_name  # the plugin refuses on everything but a readable yes
        if exit_code or not stdout.strip():
            return bool(exit_code)
        answer = parse_answer(stdout)
        return answer is None or "deny" in answer


HOOKS = _OpencodeHooks()
