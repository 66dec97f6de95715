"""Read hook payloads and write answers in the forms that several clients share.

A payload is never guessed at: whatever no release of a client is known to send raises `Malformed`, which
refuses the tool call.
"""

from __future__ import annotations

import json

from landlane.clients.model import CLIENTS
from landlane.errors import Malformed
from landlane.protocol.hook_events import EDIT, OTHER, READ, SHELL, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.clients.model import ClientTools, PayloadKeys

_PATCH_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
# The characters that Codex strips from the ends of a line. Python's `strip` removes more, which would name
# another file.
_SPACES = " \t\n\x0b\x0c\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
_LINE_ENDS = _SPACES + "".join(map(chr, range(0x2000, 0x200B)))


# ------------------------------------------------------------------------------------------- reading


def read_session(
    client: str, kind: str, payload: Mapping[str, Any], environment: Mapping[str, str], keys: PayloadKeys
) -> dict[str, Any]:
    """Return the fields of a `HookEvent` that say who calls and where."""
    return {
        "client": client,
        "kind": kind,
        "session": get_text(payload, keys.session, is_needed=True),
        "agent": get_text(payload, keys.agent),
        "agent_type": get_text(payload, keys.agent_type),
        "cwd": get_text(payload, "cwd") or environment.get(CLIENTS[client].project_variable, ""),
    }


def read_tool(tools: ClientTools, payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """Return the fields of a `HookEvent` that say which tool is called, with which files or command."""
    name = get_text(payload, tools.keys.tool, is_needed=True)
    call = get_text(payload, "tool_use_id")
    return {"call": call, **read_call(tools, name, get_table(payload, tools.keys.arguments), cwd)}


def read_call(tools: ClientTools, name: str, arguments: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """Return the same for a tool's name and arguments, wherever a client puts them."""
    if name in tools.edits:
        return {"tool_name": name, "tool": EDIT, "paths": (get_path(arguments, tools.edits[name], cwd),)}
    if name in tools.patches:
        patch = get_text(arguments, tools.patches[name], is_needed=True)
        paths = tuple(absolute_path(path, cwd) for path in patched_paths(patch))
        return {"tool_name": name, "tool": EDIT, "paths": paths}
    if name in tools.reads:
        return {"tool_name": name, "tool": READ, "paths": (get_path(arguments, tools.reads[name], cwd),)}
    if name not in tools.shells:
        return {"tool_name": name, "tool": OTHER}
    facts: dict[str, Any] = {
        "tool_name": name,
        "tool": SHELL,
        "command": get_text(arguments, "command"),
        "is_background": name in tools.background_shells or arguments.get(tools.background) is True,
    }
    if tools.folder:
        facts["cwd"] = absolute_path(get_text(arguments, tools.folder) or cwd, cwd)
    return facts


def parse_arguments(payload: Mapping[str, Any], key: str, patch_key: str) -> Mapping[str, Any]:
    """Return a tool's arguments that may also be JSON in a text, or the text of a patch."""
    given = payload.get(key)
    if not isinstance(given, str):
        return get_table(payload, key)
    if not given.lstrip().startswith("{"):
        return {patch_key: given}
    try:
        return as_table(json.loads(given), f"`{key}`")
    except (ValueError, RecursionError):
        raise unreadable(f"`{key}` is no JSON") from None


def patched_paths(patch: str) -> tuple[str, ...]:
    """Return the paths that a patch in the `*** Begin Patch` form writes, each once, as it names them.

    A line of context that looks like a header counts as one: a path too many is harmless, one too few is not.

    Raises:
        Malformed: it names no file.
    """
    paths: dict[str, None] = {}
    for line in patch.split("\n"):
        stripped = line.strip(_LINE_ENDS)
        for mark in _PATCH_MARKS:
            if stripped.startswith(mark) and len(stripped) > len(mark):
                paths[stripped[len(mark) :]] = None
    if not paths:
        raise unreadable("a patch that names no file")
    return tuple(paths)


def get_text(payload: Mapping[str, Any], key: str, is_needed: bool = False) -> str:
    """Return a text of a payload; one that is absent and not needed is empty.

    Raises:
        Malformed: it is something else, or is missing.
    """
    item = payload.get(key)
    if item is None and not is_needed:
        return ""
    if not isinstance(item, str) or (is_needed and not item):
        raise unreadable(f"`{key}` is not a text")
    return item


def get_table(payload: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a table of a payload; an absent one is empty.

    Raises:
        Malformed: it is something else.
    """
    item = payload.get(key)
    return {} if item is None else as_table(item, f"`{key}`")


def as_table(item: Any, what: str) -> Mapping[str, Any]:
    """Return the item, which must be a table.

    Raises:
        Malformed: it is something else.
    """
    if item.__class__ is not dict:
        raise unreadable(f"{what} is not a table")
    return item


def get_path(payload: Mapping[str, Any], key: str, cwd: str) -> str:
    """Return a path of a payload as an absolute path.

    Raises:
        Malformed: it is not a path, or is relative to an unknown folder.
    """
    return absolute_path(get_text(payload, key, is_needed=True), cwd)


def absolute_path(path: str, cwd: str) -> str:
    """Return a path that a client names as an absolute path.

    Raises:
        Malformed: it is not a path, or is relative to an unknown folder.
    """
    if "\0" in path or not (path.startswith("/") or cwd.startswith("/")):
        raise unreadable("a path that leads nowhere")
    return path if path.startswith("/") else f"{cwd.rstrip('/')}/{path}"


def unreadable(what: str) -> Malformed:
    """Return the error for a payload that no release of the client is known to send."""
    return Malformed(
        f"the hook was called with something it cannot read: {what}",
        code="HOOK_INPUT",
        hint="run `landlane doctor`; the client may be newer than this version of Landlane",
    )


# ----------------------------------------------------------------------------------------- answering


def answer_with(answer: Mapping[str, Any]) -> HookOutput:
    """Return an answer as one line of JSON on standard output."""
    return HookOutput(stdout=json.dumps(answer) + "\n")


def deny_call(event_name: str, reason: str) -> HookOutput:
    """Refuse a tool call in both known forms, since some clients know only one of them."""
    text = printable(reason)
    decision = {
        "hookEventName": event_name,
        "permissionDecision": "deny",
        "permissionDecisionReason": text,
    }
    return answer_with({"decision": "block", "reason": text, "hookSpecificOutput": decision})


def add_context(event_name: str, text: str) -> HookOutput:
    """Give the model a text with an event."""
    specific = {"hookEventName": event_name, "additionalContext": printable(text)}
    return answer_with({"hookSpecificOutput": specific})


def block(reason: str) -> HookOutput:
    """Refuse something other than a tool call: the end of a turn, a prompt, or a change of settings."""
    return answer_with({"decision": "block", "reason": printable(reason)})


def show_user(text: str) -> HookOutput:
    """Show a text to the user of the client only."""
    return answer_with({"systemMessage": printable(text)})


def fail(text: str, exit_code: int = 0) -> HookOutput:
    """Write a text to standard error, and end with an exit code."""
    return HookOutput(exit_code=exit_code, stderr=printable(text) + "\n")


def printable(text: str) -> str:
    """Return the text without lone surrogates, which odd file names bring in, and never empty.

    Strict JSON readers drop an answer with either, and then let the edit pass.
    """
    return text.encode("utf-8", "replace").decode("utf-8").strip() or "Landlane refuses this"


def shorten(text: str, most_bytes: int) -> str:
    """Cut a text with a note where the client would cut it itself."""
    encoded = printable(text).encode("utf-8")
    if len(encoded) <= most_bytes:
        return text
    note = "\n[cut here; `landlane status` tells the rest]"
    return encoded[: most_bytes - len(note)].decode("utf-8", "ignore") + note


def parse_answer(stdout: str) -> Mapping[str, Any] | None:
    """Return the JSON table on a hook's standard output; None if there is none."""
    try:
        return as_table(json.loads(stdout), "the answer")
    except (ValueError, Malformed):
        return None


def is_refusal(exit_code: int, stdout: str) -> bool:
    """Return whether clients of the shared form refuse a tool call on such an answer."""
    if exit_code:
        return exit_code == 2
    try:
        answer = as_table(json.loads(stdout), "the answer")
        specific = get_table(answer, "hookSpecificOutput")
    except (ValueError, Malformed):
        return False
    return answer.get("decision") == "block" or specific.get("permissionDecision") == "deny"
