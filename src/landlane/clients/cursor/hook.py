"""Read the payloads of Cursor's hooks, by its documentation, and write an answer to every event."""

from __future__ import annotations

from landlane.clients.cursor.tools import CHANGES, PATHS, TOOLS
from landlane.clients.hook_format import (
    answer_with,
    as_table,
    get_text,
    parse_answer,
    parse_arguments,
    printable,
    read_call,
    unreadable,
)
from landlane.protocol import hook_events as events
from landlane.protocol.hook_events import HookAnswer, HookEvent, HookOutput
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


BEFORE_TOOL = "preToolUse"
_PROMPT = "beforeSubmitPrompt"

# Subagents are left out: what names them at their start is not in the payloads of their tools.
KINDS = {
    "sessionStart": events.START,
    _PROMPT: events.PROMPT,
    BEFORE_TOOL: events.BEFORE,
    "postToolUse": events.AFTER,
    "postToolUseFailure": events.AFTER,
    "stop": events.STOP,
    "sessionEnd": events.END,
}
_GUARDS = ("", BEFORE_TOOL)
_CONTEXT_KINDS = (events.START, events.PROMPT, events.BEFORE, events.AFTER)


def read(event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """Read one call of a hook.

    Raises:
        Malformed: no release is known to send this.
    """
    payload = as_table(payload, "the input")
    kind = KINDS.get(get_text(payload, "hook_event_name") or event_name, events.OTHER_KIND)
    session = get_text(payload, "conversation_id") or get_text(payload, "session_id", is_needed=True)
    cwd = _read_cwd(payload, environment)
    event = HookEvent(client="cursor", kind=kind, session=session, cwd=cwd)
    if kind in (events.BEFORE, events.AFTER):
        return replace(event, **_read_tool(payload, cwd))
    loops = payload.get("loop_count")
    source = get_text(payload, "reason")
    return replace(event, source=source, is_again=isinstance(loops, int) and loops > 0)


def _read_cwd(payload: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return where the agent works: as the payload says, else the first folder that is open."""
    roots: Any = payload.get("workspace_roots")
    first = roots[0] if roots.__class__ is list and roots else environment.get("CURSOR_PROJECT_DIR", "")
    return get_text(payload, "cwd") or get_text({"workspace_roots": first}, "workspace_roots")


def _read_tool(payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    given = parse_arguments(payload, "tool_input", "patch")
    name = get_text(payload, "tool_name") or _guess_tool(given)
    call = {"call": get_text(payload, "tool_use_id"), "tool_name": name}
    if name in TOOLS.patches and ("patch" in given or "input" in given):
        patch = {"patch": given.get("patch") or given.get("input")}
        return {**read_call(TOOLS, name, patch, cwd), **call}
    if name in (*TOOLS.patches, *TOOLS.edits, *TOOLS.reads):
        path = {PATHS[0]: next((given[key] for key in PATHS if given.get(key)), None)}
        return {**read_call(TOOLS, "Write" if name in TOOLS.patches else name, path, cwd), **call}
    return {**read_call(TOOLS, name, given, cwd), **call}


def _guess_tool(given: Mapping[str, Any]) -> str:
    """Return the tool that has such arguments: some releases leave its name out."""
    if "command" in given:
        return "Shell"
    if "patch" in given:
        return "ApplyPatch"
    if any(key in given for key in PATHS) and any(key in given for key in CHANGES):
        return "Write"
    raise unreadable("`tool_name` is not a text")


def render(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """Write an answer as Cursor wants it: a guard that gives no permission counts as broken."""
    if answer.verdict == events.DENY and event.kind == events.BEFORE:
        return _deny(answer.text)
    fields: dict[str, Any] = {}
    if event.kind == events.BEFORE:
        fields["permission"] = "allow"
    if event.kind == events.PROMPT:
        fields["continue"] = True
    if answer.verdict == events.HOLD and event.kind == events.STOP and not event.is_again:
        fields["followup_message"] = printable(answer.text)
    if answer.verdict in (events.INFORM, events.DENY) and answer.text and event.kind in _CONTEXT_KINDS:
        fields["additional_context"] = printable(answer.text)
    return answer_with(fields)


def refuse(event_name: str, text: str) -> HookOutput:
    """Refuse what is about to happen. Exit 2 at a prompt would discard the prompt."""
    if event_name in _GUARDS:
        return _deny(text)
    answer = answer_with({"continue": True} if event_name == _PROMPT else {})
    return replace(answer, stderr=printable(text) + "\n")


def _deny(text: str) -> HookOutput:
    reason = printable(text)
    return answer_with({"permission": "deny", "user_message": reason, "agent_message": reason})


def is_denial(event_name: str, exit_code: int, stdout: str) -> bool:
    """Return whether Cursor refuses on this answer: with `failClosed`, on anything but a readable yes."""
    if event_name not in _GUARDS or exit_code:
        return event_name in _GUARDS
    return (parse_answer(stdout) or {}).get("permission") != "allow"
