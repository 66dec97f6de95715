"""What our opencode plugin says and wants to hear. Both ends are ours, so the words are few."""

from __future__ import annotations

from landlane.clients import shared_hook_format as shapes
from landlane.clients.opencode.tools import EDITS, PATCHES, SHELLS
from landlane.errors import Malformed
from landlane.protocol import hook_events as words
from landlane.protocol.hook_events import HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookAnswer


NAME = "opencode"
TITLE = "opencode"

KINDS = {
    "session.created": words.START,
    "chat.message": words.PROMPT,
    "tool.execute.before": words.BEFORE,
    "tool.execute.after": words.AFTER,
    "session.idle": words.STOP,
    "session.deleted": words.END,
}
_CHILD_KINDS = {words.START: words.CHILD_START, words.STOP: words.CHILD_STOP, words.END: words.CHILD_STOP}


def read(word: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """One call of the plugin, in our words.

    Raises:
        Malformed: no release of opencode is known to say this.
    """
    del environment
    said = shapes.as_table(payload, "the input")
    agent = shapes.text_of(said, "agent_id")
    kind = KINDS.get(shapes.text_of(said, "hook_event_name") or word, words.OTHER_KIND)
    facts: dict[str, Any] = {
        "client": NAME,
        "kind": _CHILD_KINDS.get(kind, kind) if agent else kind,
        "session": shapes.text_of(said, "session_id", is_needed=True),
        "agent": agent,
        "cwd": shapes.text_of(said, "cwd"),
        "source": shapes.text_of(said, "source"),
    }
    if kind in (words.BEFORE, words.AFTER):
        return HookEvent(**{**facts, **_tool_facts(said, facts["cwd"])})
    return HookEvent(**facts)


def _tool_facts(said: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """What a tool is about to do, or has done, with which files."""
    name = shapes.text_of(said, "tool_name", is_needed=True)
    given = shapes.table_of(said, "tool_input")
    facts: dict[str, Any] = {"tool_name": name, "call": shapes.text_of(said, "tool_use_id")}
    if name in EDITS:
        return {**facts, "tool": words.EDIT, "paths": (shapes.path_of(given, "filePath", cwd),)}
    if name in PATCHES:
        return {**facts, "tool": words.EDIT, "paths": _patched(given, cwd)}
    if name == "read":
        return {**facts, "tool": words.READ, "paths": (shapes.path_of(given, "filePath", cwd),)}
    if name in SHELLS:
        return {
            **facts,
            "tool": words.SHELL,
            "command": shapes.text_of(given, "command"),
            "cwd": shapes.placed(shapes.text_of(given, "workdir") or cwd, cwd),
        }
    return {**facts, "tool": words.OTHER}


def _patched(given: Mapping[str, Any], cwd: str) -> tuple[str, ...]:
    from landlane.clients.patch_paths import patched_paths  # noqa: PLC0415 - some models only

    patch = shapes.text_of(given, "patchText", is_needed=True)
    return tuple(shapes.placed(path, cwd) for path in patched_paths(patch))


def say(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """An answer as the plugin wants it. opencode cannot be held, so it is told with the next message."""
    if answer.verdict == words.DENY and event.kind == words.BEFORE:
        return HookOutput(stdout=shapes.line({"deny": shapes.readable(answer.text)}))
    if answer.verdict != words.SILENT and answer.text:
        return HookOutput(stdout=shapes.line({"tell": shapes.readable(answer.text)}))
    return HookOutput()


def refuse(word: str, text: str) -> HookOutput:
    """Refuse what is about to happen; the plugin takes any failure at a tool call for a no, and no other."""
    del word
    return HookOutput(exit_code=2, stderr=shapes.readable(text) + "\n")


def is_denial(word: str, exit_code: int, stdout: str) -> bool:
    """Whether the plugin refuses on such an answer, that is on everything but a readable yes."""
    del word
    import json  # noqa: PLC0415 - never on the way of a hook

    if exit_code or not stdout.strip():
        return bool(exit_code)
    try:
        return "deny" in shapes.as_table(json.loads(stdout), "the answer")
    except (ValueError, Malformed):
        return True
