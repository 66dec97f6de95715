"""What Cursor's hooks say and want to hear, by its documentation. It wants an answer to everything."""

from __future__ import annotations

from landlane.clients import shared_hook_format as shapes
from landlane.clients.cursor.tools import CHANGES, EDITS, PATHS, READS, SHELLS
from landlane.errors import Malformed
from landlane.protocol import hook_events as words
from landlane.protocol.hook_events import HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookAnswer


NAME = "cursor"
TITLE = "Cursor"

BEFORE_TOOL = "preToolUse"
_PROMPT = "beforeSubmitPrompt"

# Subagents are left out: what names them at their start is not in the payloads of their tools.
KINDS = {
    "sessionStart": words.START,
    _PROMPT: words.PROMPT,
    BEFORE_TOOL: words.BEFORE,
    "postToolUse": words.AFTER,
    "postToolUseFailure": words.AFTER,
    "stop": words.STOP,
    "sessionEnd": words.END,
}
_TOLD = (words.START, words.PROMPT, words.BEFORE, words.AFTER)


def read(word: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """One call of a hook, in our words.

    Raises:
        Malformed: no release is known to send this.
    """
    said = shapes.as_table(payload, "the input")
    kind = KINDS.get(shapes.text_of(said, "hook_event_name") or word, words.OTHER_KIND)
    session = shapes.text_of(said, "conversation_id") or shapes.text_of(said, "session_id", is_needed=True)
    facts: dict[str, Any] = {"client": NAME, "kind": kind, "session": session, "cwd": _cwd(said, environment)}
    if kind in (words.BEFORE, words.AFTER):
        return HookEvent(**{**facts, **_tool_facts(said, facts["cwd"])})
    again = said.get("loop_count")
    return HookEvent(
        **facts, source=shapes.text_of(said, "reason"), is_again=isinstance(again, int) and again > 0
    )


def _cwd(said: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Where the agent works: as the payload says, else the first folder that is open."""
    first = next(iter(_items(said.get("workspace_roots"))), environment.get("CURSOR_PROJECT_DIR", ""))
    return shapes.text_of(said, "cwd") or shapes.text_of({"workspace_roots": first}, "workspace_roots")


def _items(found: Any) -> list[Any]:
    return found if found.__class__ is list else []


def _tool_facts(said: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """What a tool is about to do, or has done, with which files."""
    given = _arguments(said)
    name = shapes.text_of(said, "tool_name") or _guessed(given)
    facts: dict[str, Any] = {"tool_name": name, "call": shapes.text_of(said, "tool_use_id")}
    if name == "ApplyPatch":
        return {**facts, "tool": words.EDIT, "paths": _patched(given, cwd)}
    if name in EDITS:
        return {**facts, "tool": words.EDIT, "paths": (_path(given, cwd),)}
    if name in READS:
        return {**facts, "tool": words.READ, "paths": (_path(given, cwd),)}
    if name in SHELLS:
        where = shapes.text_of(given, "working_directory") or cwd
        command = shapes.text_of(given, "command")
        return {**facts, "tool": words.SHELL, "command": command, "cwd": shapes.placed(where, cwd)}
    return {**facts, "tool": words.OTHER}


def _arguments(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of the tool: a table, JSON in a text, or a patch."""
    given = said.get("tool_input")
    if not isinstance(given, str):
        return shapes.table_of(said, "tool_input")
    if not given.lstrip().startswith("{"):
        return {"patch": given}
    import json  # noqa: PLC0415 - never on the way of a hook

    try:
        return shapes.as_table(json.loads(given), "`tool_input`")
    except (ValueError, RecursionError):
        raise shapes.odd("`tool_input` is no JSON") from None


def _guessed(given: Mapping[str, Any]) -> str:
    """The tool by its arguments: some releases leave its name out."""
    if "command" in given:
        return "Shell"
    if "patch" in given:
        return "ApplyPatch"
    if any(key in given for key in PATHS) and any(key in given for key in CHANGES):
        return "Write"
    raise shapes.odd("`tool_name` is not a text")


def _path(given: Mapping[str, Any], cwd: str) -> str:
    key = next((key for key in PATHS if given.get(key)), "file_path")
    return shapes.path_of(given, key, cwd)


def _patched(given: Mapping[str, Any], cwd: str) -> tuple[str, ...]:
    if "patch" not in given and "input" not in given:
        return (_path(given, cwd),)
    from landlane.clients.patch_paths import patched_paths  # noqa: PLC0415 - some models only

    patch = shapes.text_of(given, "patch") or shapes.text_of(given, "input", is_needed=True)
    return tuple(shapes.placed(path, cwd) for path in patched_paths(patch))


def say(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """An answer as Cursor wants it: a guard without a permission counts as broken."""
    if answer.verdict == words.DENY and event.kind == words.BEFORE:
        return _deny(answer.text)
    said: dict[str, Any] = {}
    if event.kind == words.BEFORE:
        said["permission"] = "allow"
    if event.kind == words.PROMPT:
        said["continue"] = True
    if answer.verdict == words.HOLD and event.kind == words.STOP and not event.is_again:
        said["followup_message"] = shapes.readable(answer.text)
    if answer.verdict in (words.INFORM, words.DENY) and answer.text and event.kind in _TOLD:
        said["additional_context"] = shapes.readable(answer.text)
    return HookOutput(stdout=shapes.line(said))


def refuse(word: str, text: str) -> HookOutput:
    """Refuse what is about to happen, whatever it is. Exit 2 at a prompt would throw it away."""
    if word in ("", BEFORE_TOOL):
        return _deny(text)
    said = {"continue": True} if word == _PROMPT else {}
    return HookOutput(stdout=shapes.line(said), stderr=shapes.readable(text) + "\n")


def _deny(text: str) -> HookOutput:
    reason = shapes.readable(text)
    said = {"permission": "deny", "user_message": reason, "agent_message": reason}
    return HookOutput(stdout=shapes.line(said))


def is_denial(word: str, exit_code: int, stdout: str) -> bool:
    """Whether Cursor refuses on such an answer: with `failClosed`, on anything but a readable yes."""
    if word not in ("", BEFORE_TOOL) or exit_code:
        return word in ("", BEFORE_TOOL)
    import json  # noqa: PLC0415 - never on the way of a hook

    try:
        return shapes.as_table(json.loads(stdout), "the answer").get("permission") != "allow"
    except (ValueError, Malformed):
        return True
