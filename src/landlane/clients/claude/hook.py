"""Read the payloads of Claude Code's hooks, and write answers that it obeys."""

from __future__ import annotations

from landlane.clients.claude.tools import TOOLS
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
    shorten,
    show_user,
)
from landlane.protocol import hook_events as events
from landlane.protocol.hook_events import HookAnswer, HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


BEFORE_TOOL = "PreToolUse"

KINDS = {
    "SessionStart": events.START,
    "UserPromptSubmit": events.PROMPT,
    BEFORE_TOOL: events.BEFORE,
    "PostToolUse": events.AFTER,
    "PostToolUseFailure": events.AFTER,
    "Stop": events.STOP,
    "SubagentStart": events.CHILD_START,
    "SubagentStop": events.CHILD_STOP,
    "SessionEnd": events.END,
    "ConfigChange": events.SETTINGS,
}
_GUARDS = ("", BEFORE_TOOL, "ConfigChange")
_FAILED = "failed"

# Of more than 10,000 characters the model sees only the beginning.
_MOST_BYTES = 9_900

# The events at which `additionalContext` reaches the model.
_CONTEXT_EVENTS = {
    events.START: "SessionStart",
    events.PROMPT: "UserPromptSubmit",
    events.BEFORE: BEFORE_TOOL,
    events.CHILD_START: "SubagentStart",
}


def read(event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """Read what Claude Code writes to a hook's standard input.

    Raises:
        Malformed: Claude Code is not known to send this.
    """
    payload = as_table(payload, "the input")
    given_name = get_text(payload, "hook_event_name") or event_name
    kind = KINDS.get(given_name) or KINDS.get(event_name, events.OTHER_KIND)
    facts = read_session("claude", kind, payload, environment, TOOLS.keys)
    if _is_copilot(facts["session"], environment):
        kind = facts["kind"] = events.OTHER_KIND
    if kind in (events.BEFORE, events.AFTER):
        source = _FAILED if given_name == "PostToolUseFailure" else ""
        return HookEvent(**facts, source=source, **read_tool(TOOLS, payload, facts["cwd"]))
    if kind in (events.STOP, events.CHILD_STOP):
        is_again = payload.get("stop_hook_active") is True
        return HookEvent(**facts, is_again=is_again, is_background=bool(payload.get("background_tasks")))
    if kind == events.SETTINGS:
        path = get_text(payload, "file_path")
        return HookEvent(**facts, source=get_text(payload, "source"), settings_path=path)
    return HookEvent(**facts, source=get_text(payload, "source") or get_text(payload, "reason"))


def _is_copilot(session: str, environment: Mapping[str, str]) -> bool:
    """Return whether Copilot CLI calls, which also runs the hooks in Claude's settings, beside its own.

    Taken for Claude, one session of Copilot would be two that refuse each other's edits.
    """
    return "COPILOT_PROJECT_DIR" in environment and environment.get("CLAUDE_CODE_SESSION_ID") != session


def render(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """Write an answer in the form that Claude Code obeys at this event."""
    if answer.verdict == events.SILENT or event.kind in (events.END, events.OTHER_KIND):
        return HookOutput()
    text = shorten(answer.text, _MOST_BYTES)
    if answer.verdict == events.DENY and event.kind == events.BEFORE:
        return deny_call(BEFORE_TOOL, text)
    if answer.verdict == events.DENY and event.kind in (events.PROMPT, events.SETTINGS):
        return block(text)
    if event.kind in (events.STOP, events.CHILD_STOP):
        # Held once: an agent that cannot do what is asked must be able to end.
        is_held = answer.verdict in (events.HOLD, events.DENY) and not event.is_again
        return block(text) if is_held else show_user(text)
    if event.kind == events.AFTER:
        return add_context("PostToolUseFailure" if event.source == _FAILED else "PostToolUse", text)
    if event.kind in _CONTEXT_EVENTS:
        return add_context(_CONTEXT_EVENTS[event.kind], text)
    return show_user(text)


def refuse(event_name: str, text: str) -> HookOutput:
    """Refuse a call that could not be read.

    Exit 2 refuses at every event, also the end of a turn and a prompt. Where nothing is guarded it is exit 1,
    which shows the text and goes on.
    """
    return fail(text, 2 if event_name in _GUARDS else 1)


def is_denial(event_name: str, exit_code: int, stdout: str) -> bool:
    """Return whether Claude Code would refuse the tool call on this answer."""
    return event_name in _GUARDS and is_refusal(exit_code, stdout)
