"""Read the payloads of Gemini CLI's hooks, and write answers that it obeys.

Its payloads do not tell subagents apart from their session.
"""

from __future__ import annotations

from landlane.clients.gemini.tools import TOOLS
from landlane.clients.hook_format import (
    absolute_path,
    add_context,
    as_table,
    block,
    fail,
    get_table,
    get_text,
    is_refusal,
    read_session,
    read_tool,
    show_user,
)
from landlane.protocol import hook_events as events
from landlane.protocol.hook_events import HookAnswer, HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


BEFORE_TOOL = "BeforeTool"

KINDS = {
    "SessionStart": events.START,
    "BeforeAgent": events.PROMPT,
    BEFORE_TOOL: events.BEFORE,
    "AfterTool": events.AFTER,
    "AfterAgent": events.STOP,
    "SessionEnd": events.END,
}
_GUARDS = ("", BEFORE_TOOL)
_READS_MANY = "read_many_files"
_GLOB = frozenset("*?[{!")


def read(event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """Read one call of a hook.

    Raises:
        Malformed: no release is known to send this.
    """
    payload = as_table(payload, "the input")
    kind = KINDS.get(get_text(payload, "hook_event_name") or event_name, events.OTHER_KIND)
    facts = read_session("gemini", kind, payload, environment, TOOLS.keys)
    if kind in (events.BEFORE, events.AFTER):
        return HookEvent(**{**facts, **_read_tool(payload, facts["cwd"])})
    source = get_text(payload, "source") or get_text(payload, "reason")
    return HookEvent(**facts, source=source, is_again=payload.get("stop_hook_active") is True)


def _read_tool(payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    if payload.get("tool_name") != _READS_MANY:
        return read_tool(TOOLS, payload, cwd)
    listed: Any = get_table(payload, "tool_input").get("include")
    named = [str(path) for path in listed if path] if listed.__class__ is list else []
    paths = tuple(absolute_path(path, cwd) for path in named if _GLOB.isdisjoint(path))
    return {"tool_name": _READS_MANY, "tool": events.READ, "paths": paths}


def render(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """Write an answer as Gemini wants it; with a tool call that is allowed, only its user sees a text."""
    if answer.verdict == events.DENY and event.kind == events.BEFORE:
        return block(answer.text)
    if answer.verdict == events.HOLD and event.kind == events.STOP and not event.is_again:
        return block(answer.text)
    if answer.text and answer.verdict in (events.INFORM, events.DENY):
        if event.kind in (events.START, events.PROMPT, events.AFTER):
            return add_context(next(name for name, kind in KINDS.items() if kind == event.kind), answer.text)
        if event.kind == events.BEFORE:
            return show_user(answer.text)
    return HookOutput()


def refuse(event_name: str, text: str) -> HookOutput:
    """Refuse what is about to happen. Exit 2 at any other event would discard a prompt."""
    return fail(text, 2 if event_name in _GUARDS else 0)


def is_denial(event_name: str, exit_code: int, stdout: str) -> bool:
    """Return whether Gemini refuses on this answer: any exit code from 2 on does, 1 does not."""
    return event_name in _GUARDS and (exit_code >= 2 or (exit_code == 0 and is_refusal(0, stdout)))
