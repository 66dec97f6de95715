"""Read the payloads of Codex's hooks, and write answers that it obeys."""

from __future__ import annotations

from landlane.clients.codex.tools import TOOLS
from landlane.clients.hook_format import (
    add_context,
    as_table,
    block,
    deny_call,
    fail,
    get_table,
    get_text,
    is_refusal,
    parse_answer,
    printable,
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
    "Stop": events.STOP,
    "SubagentStart": events.CHILD_START,
    "SubagentStop": events.CHILD_STOP,
    "SessionEnd": events.END,
}
_GUARDS = ("", BEFORE_TOOL)

# Codex keeps 2,500 tokens of context from a hook, at four bytes each, and moves the rest into a file.
_MOST_BYTES = 9_900


def read(event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """Read what Codex writes to a hook's standard input.

    Raises:
        Malformed: Codex is not known to send this.
    """
    payload = as_table(payload, "the input")
    kind = KINDS.get(get_text(payload, "hook_event_name")) or KINDS.get(event_name, events.OTHER_KIND)
    facts = read_session("codex", kind, payload, environment, TOOLS.keys)
    if kind in (events.BEFORE, events.AFTER):
        return HookEvent(**facts, **read_tool(TOOLS, payload, facts["cwd"]))
    if kind in (events.STOP, events.CHILD_STOP):
        return HookEvent(**facts, is_again=payload.get("stop_hook_active") is True)
    return HookEvent(**facts, source=get_text(payload, "source") or get_text(payload, "reason"))


def render(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """Write an answer in the form that Codex obeys at this event; one unknown key, and it obeys nothing."""
    if answer.verdict == events.SILENT or event.kind in (events.END, events.OTHER_KIND):
        return HookOutput()
    text = shorten(answer.text, _MOST_BYTES)
    if answer.verdict == events.DENY and event.kind == events.BEFORE:
        return deny_call(BEFORE_TOOL, _without_full_stop(text))
    if answer.verdict == events.DENY and event.kind == events.PROMPT:
        return block(text)
    if event.kind in (events.STOP, events.CHILD_STOP):
        # Held once: Codex would hold an agent for ever.
        is_held = answer.verdict in (events.HOLD, events.DENY) and not event.is_again
        return block(text) if is_held else show_user(text)
    return add_context(next(name for name, kind in KINDS.items() if kind == event.kind), text)


def refuse(event_name: str, text: str) -> HookOutput:
    """Refuse a call that could not be read; where nothing is guarded, fail visibly."""
    return fail(_without_full_stop(text), 2 if event_name in _GUARDS else 1)


def _without_full_stop(text: str) -> str:
    """Return a reason without its last full stop: Codex appends `. Command: …` to it."""
    return printable(text).removesuffix(".")


def is_denial(event_name: str, exit_code: int, stdout: str) -> bool:
    """Return whether Codex would refuse the tool call on this answer."""
    if event_name not in _GUARDS or not is_refusal(exit_code, stdout):
        return False
    return exit_code == 2 or _has_known_keys(parse_answer(stdout) or {})


def _has_known_keys(answer: Mapping[str, Any]) -> bool:
    """Return whether Codex knows every key of an answer; with any other it ignores all of it."""
    specific = get_table(answer, "hookSpecificOutput")
    known = {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    return set(answer) <= {"decision", "reason", "hookSpecificOutput"} and set(specific) <= known
