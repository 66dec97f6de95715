"""Read the payloads of Copilot CLI's hooks, and write answers that it obeys.

A payload does not name its event, so the argument of the hook's command does.
"""

from __future__ import annotations

from landlane.clients.copilot.tools import TOOLS
from landlane.clients.hook_format import (
    answer_with,
    as_table,
    block,
    fail,
    get_text,
    parse_answer,
    parse_arguments,
    printable,
    read_call,
    read_session,
    unreadable,
)
from landlane.protocol import hook_events as events
from landlane.protocol.hook_events import HookAnswer, HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


BEFORE_TOOL = "preToolUse"

KINDS = {
    "sessionStart": events.START,
    "userPromptSubmitted": events.PROMPT,
    BEFORE_TOOL: events.BEFORE,
    "postToolUse": events.AFTER,
    "postToolUseFailure": events.AFTER,
    "agentStop": events.STOP,
    "subagentStart": events.CHILD_START,
    "subagentStop": events.CHILD_STOP,
    "sessionEnd": events.END,
}
_GUARDS = ("", BEFORE_TOOL)
_CONTEXT_KINDS = (events.START, events.PROMPT, events.BEFORE, events.AFTER, events.CHILD_START)


def read(event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """Read one call of a hook.

    Raises:
        Malformed: no release is known to send this.
    """
    if not event_name:
        raise unreadable("the hook's command does not name its event")
    payload = as_table(payload, "the input")
    kind = KINDS.get(event_name, events.OTHER_KIND)
    facts = read_session("copilot", kind, payload, environment, TOOLS.keys)
    if facts["agent"]:
        # A subagent sends its own id as the session; the session it works for is in `parentAgentId`.
        facts["session"] = get_text(payload, "parentAgentId") or facts["session"]
        if kind == events.STOP:
            kind = facts["kind"] = events.OTHER_KIND  # subagentStop reports the end of a subagent
    if kind in (events.BEFORE, events.AFTER):
        return HookEvent(**facts, **_read_tool(payload, facts["cwd"]))
    source = get_text(payload, "source") or get_text(payload, "reason")
    return HookEvent(**facts, source=source, is_again=payload.get("stop_hook_active") is True)


def _read_tool(payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    name = get_text(payload, "toolName", is_needed=True)
    given = parse_arguments(payload, "toolArgs", "input")
    if name == "str_replace_editor" and given.get("command") == "view":
        return {"tool_name": name, "tool": events.OTHER}
    if name in TOOLS.patches and not given.get("input"):
        given = {**given, "input": given.get("patch")}
    facts = read_call(TOOLS, name, given, cwd)
    if facts["tool"] == events.SHELL:
        facts["command"] = facts["command"] or get_text(given, "input")
        facts["is_background"] = facts["is_background"] or given.get("mode") == "async"
    return facts


def render(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """Write an answer in the form that Copilot obeys."""
    if answer.verdict == events.DENY and event.kind == events.BEFORE:
        return _deny(answer.text)
    if answer.verdict == events.HOLD and event.kind == events.STOP and not event.is_again:
        return block(answer.text)
    if answer.text and answer.verdict in (events.INFORM, events.DENY) and event.kind in _CONTEXT_KINDS:
        return answer_with({"additionalContext": printable(answer.text)})
    return HookOutput()


def refuse(event_name: str, text: str) -> HookOutput:
    """Refuse what is about to happen; events other than a tool call cannot be refused."""
    return _deny(text) if event_name in _GUARDS else fail(text)


def _deny(text: str) -> HookOutput:
    return answer_with({"permissionDecision": "deny", "permissionDecisionReason": printable(text)})


def is_denial(event_name: str, exit_code: int, stdout: str) -> bool:
    """Return whether Copilot refuses on this answer: it does when a guard fails, not on unreadable output."""
    if event_name not in _GUARDS or exit_code:
        return event_name in _GUARDS
    return (parse_answer(stdout) or {}).get("permissionDecision") == "deny"
