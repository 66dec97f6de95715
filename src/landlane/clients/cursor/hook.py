"""Cursor: its tools, and its hooks, by its documentation. Every event gets an answer."""

from __future__ import annotations

from landlane.clients.hook_format import (
    ClientHooks,
    answer_with,
    as_table,
    get_text,
    parse_answer,
    parse_arguments,
    printable,
    unreadable,
)
from landlane.clients.model import ClientTools, PayloadKeys
from landlane.protocol.hook_events import HookEventKind, HookVerdict
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookAnswer, HookEvent, HookOutput


_EDITS = ("Write", "StrReplace", "Edit", "MultiEdit", "EditNotebook", "NotebookEdit", "Delete", "TabWrite")
# Releases name these arguments differently, so all of them are tried.
_PATHS = ("file_path", "path", "target_file", "target_notebook", "notebook_path")
_CHANGES = ("contents", "content", "old_string", "new_string", "edits", "code_edit")

TOOLS = ClientTools(
    edits=dict.fromkeys(_EDITS, _PATHS[0]),
    patches={"ApplyPatch": "patch"},
    reads=dict.fromkeys(("Read", "ReadFile"), _PATHS[0]),
    shells=("Shell", "Bash"),
    folder="working_directory",
    # Subagents are left out: what names them at their start is not in the payloads of their tools.
    keys=PayloadKeys(session="conversation_id", agent=""),
)
_PROMPT = "beforeSubmitPrompt"
_KINDS = {
    "sessionStart": HookEventKind.START,
    _PROMPT: HookEventKind.PROMPT,
    "preToolUse": HookEventKind.BEFORE,
    "postToolUse": HookEventKind.AFTER,
    "postToolUseFailure": HookEventKind.AFTER,
    "stop": HookEventKind.STOP,
    "sessionEnd": HookEventKind.END,
}


class _CursorHooks(ClientHooks):
    name = "cursor"
    tools = TOOLS
    before_tool = "preToolUse"
    kinds = _KINDS

    def read(self, event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
        """Read a payload; without a `cwd`, the agent works in the first folder that is open."""
        payload = as_table(payload, "the input")
        roots: Any = payload.get("workspace_roots")
        root = {"cwd": roots[0]} if roots.__class__ is list and roots else {}
        loops = payload.get("loop_count")
        known = {
            **payload,
            "conversation_id": get_text(payload, "conversation_id") or payload.get("session_id"),
            "cwd": get_text(payload, "cwd") or get_text(root, "cwd"),
            "stop_hook_active": isinstance(loops, int) and loops > 0,
        }
        return super().read(event_name, known, environment)

    def read_tool(self, payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
        given = parse_arguments(payload, "tool_input", "patch")
        name = get_text(payload, "tool_name") or _guess_tool(given)
        if name in TOOLS.patches and ("patch" in given or "input" in given):
            return self.read_call(name, {"patch": given.get("patch") or given.get("input")}, cwd)
        if name in (*TOOLS.patches, *TOOLS.edits, *TOOLS.reads):
            path = {_PATHS[0]: next((given[key] for key in _PATHS if given.get(key)), None)}
            edit = "Write" if name in TOOLS.patches else name
            return {**self.read_call(edit, path, cwd), "tool_name": name}
        return self.read_call(name, given, cwd)

    def render(self, event: HookEvent, answer: HookAnswer) -> HookOutput:
        """Write an answer as Cursor wants it: a guard that gives no permission counts as broken."""
        if answer.verdict == HookVerdict.DENY and event.kind == HookEventKind.BEFORE:
            return self.deny(answer.text)
        fields: dict[str, Any] = {}
        if event.kind == HookEventKind.BEFORE:
            fields["permission"] = "allow"
        if event.kind == HookEventKind.PROMPT:
            fields["continue"] = True
        if answer.verdict == HookVerdict.HOLD and event.kind == HookEventKind.STOP and not event.is_again:
            fields["followup_message"] = printable(answer.text)
        if answer.text and event.kind in self.context_kinds:
            fields["additional_context"] = printable(answer.text)
        return answer_with(fields)

    def refuse(self, event_name: str, text: str) -> HookOutput:
        """Refuse what is about to happen. Exit 2 at a prompt would discard the prompt."""
        if self.is_guard(event_name):
            return self.deny(text)
        answer = answer_with({"continue": True} if event_name == _PROMPT else {})
        return replace(answer, stderr=printable(text) + "\n")

    def deny(self, text: str) -> HookOutput:
        reason = printable(text)
        return answer_with({"permission": "deny", "user_message": reason, "agent_message": reason})

    def is_denial(self, event_name: str, exit_code: int, stdout: str) -> bool:
        # With `failClosed`, Cursor refuses on anything but a readable yes.
        if not self.is_guard(event_name) or exit_code:
            return self.is_guard(event_name)
        return (parse_answer(stdout) or {}).get("permission") != "allow"


def _guess_tool(given: Mapping[str, Any]) -> str:
    """Return the tool that has such arguments: some releases leave its name out."""
    if "command" in given:
        return "Shell"
    if "patch" in given:
        return "ApplyPatch"
    if any(key in given for key in _PATHS) and any(key in given for key in _CHANGES):
        return "Write"
    raise unreadable("`tool_name` is not a text")


HOOKS = _CursorHooks()
