"""Read what our opencode plugin sends, and write answers for it; both ends are ours."""

from __future__ import annotations

from landlane.clients.hook_format import (
    answer_with,
    as_table,
    fail,
    get_text,
    parse_answer,
    printable,
    read_session,
    read_tool,
)
from landlane.clients.opencode.tools import TOOLS
from landlane.protocol import hook_events as events
from landlane.protocol.hook_events import HookAnswer, HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


BEFORE_TOOL = "tool.execute.before"

KINDS = {
    "session.created": events.START,
    "chat.message": events.PROMPT,
    BEFORE_TOOL: events.BEFORE,
    "tool.execute.after": events.AFTER,
    "session.idle": events.STOP,
    "session.deleted": events.END,
}
_CHILD_KINDS = {
    events.START: events.CHILD_START,
    events.STOP: events.CHILD_STOP,
    events.END: events.CHILD_STOP,
}


def read(event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """Read one call of the plugin.

    Raises:
        Malformed: no release of the plugin is known to send this.
    """
    payload = as_table(payload, "the input")
    kind = KINDS.get(get_text(payload, "hook_event_name") or event_name, events.OTHER_KIND)
    facts = read_session("opencode", kind, payload, environment, TOOLS.keys)
    if facts["agent"]:
        facts["kind"] = _CHILD_KINDS.get(kind, kind)
    facts["source"] = get_text(payload, "source")
    if kind in (events.BEFORE, events.AFTER):
        facts |= read_tool(TOOLS, payload, facts["cwd"])
    return HookEvent(**facts)


def render(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """Write an answer for the plugin; opencode cannot be held, so its next message carries the text."""
    if answer.verdict == events.DENY and event.kind == events.BEFORE:
        return answer_with({"deny": printable(answer.text)})
    if answer.verdict != events.SILENT and answer.text:
        return answer_with({"tell": printable(answer.text)})
    return HookOutput()


def refuse(event_name: str, text: str) -> HookOutput:
    """Refuse what is about to happen; the plugin takes any failure at a tool call for a no, and no other."""
    del event_name
    return fail(text, 2)


def is_denial(event_name: str, exit_code: int, stdout: str) -> bool:
    """Return whether the plugin refuses on this answer, that is on everything but a readable yes."""
    del event_name
    if exit_code or not stdout.strip():
        return bool(exit_code)
    answer = parse_answer(stdout)
    return answer is None or "deny" in answer
