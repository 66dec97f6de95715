"""Read the payloads of Qwen Code's hooks, and write answers: Claude's events and answers, Gemini's tools."""

from __future__ import annotations

from landlane.clients.hook_format import (
    add_context,
    as_table,
    block,
    deny_call,
    fail,
    get_text,
    is_refusal,
    read_session,
    read_tool,
    show_user,
)
from landlane.clients.qwen.tools import TOOLS
from landlane.protocol import hook_events as events
from landlane.protocol.hook_events import HookAnswer, HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


BEFORE_TOOL = "PreToolUse"
_FAILED = "PostToolUseFailure"

KINDS = {
    "SessionStart": events.START,
    "UserPromptSubmit": events.PROMPT,
    BEFORE_TOOL: events.BEFORE,
    "PostToolUse": events.AFTER,
    _FAILED: events.AFTER,
    "Stop": events.STOP,
    "SubagentStart": events.CHILD_START,
    "SubagentStop": events.CHILD_STOP,
    "SessionEnd": events.END,
}
_GUARDS = ("", BEFORE_TOOL)


def read(event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """Read one call of a hook.

    Raises:
        Malformed: no release is known to send this.
    """
    payload = as_table(payload, "the input")
    given_name = get_text(payload, "hook_event_name") or event_name
    kind = KINDS.get(given_name, events.OTHER_KIND)
    if kind == events.PROMPT and not payload.get("prompt"):
        kind = events.OTHER_KIND  # it also comes with every tool result, right after the event for that
    facts = read_session("qwen", kind, payload, environment, TOOLS.keys)
    if kind in (events.BEFORE, events.AFTER):
        source = given_name if given_name == _FAILED else ""
        return HookEvent(source=source, **{**facts, **read_tool(TOOLS, payload, facts["cwd"])})
    if kind in (events.STOP, events.CHILD_STOP):
        is_again = payload.get("stop_hook_active") is True
        return HookEvent(**facts, is_again=is_again, is_background=bool(payload.get("background_tasks")))
    return HookEvent(**facts, source=get_text(payload, "source") or get_text(payload, "reason"))


def render(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """Write an answer as Qwen wants it; with a tool call that is allowed, only its user sees a text."""
    if answer.verdict == events.DENY and event.kind == events.BEFORE:
        return deny_call(BEFORE_TOOL, answer.text)
    if answer.verdict == events.HOLD and event.kind == events.STOP and not event.is_again:
        return block(answer.text)
    if answer.text and answer.verdict in (events.INFORM, events.DENY):
        if event.kind in (events.START, events.PROMPT, events.AFTER):
            name = next(name for name, kind in KINDS.items() if kind == event.kind)
            return add_context(_FAILED if event.source == _FAILED else name, answer.text)
        if event.kind == events.BEFORE:
            return show_user(answer.text)
    return HookOutput()


def refuse(event_name: str, text: str) -> HookOutput:
    """Refuse what is about to happen. Exit 2 at any other event would discard a prompt."""
    return fail(text, 2 if event_name in _GUARDS else 0)


def is_denial(event_name: str, exit_code: int, stdout: str) -> bool:
    """Return whether Qwen refuses on this answer."""
    return event_name in _GUARDS and is_refusal(exit_code, stdout)
