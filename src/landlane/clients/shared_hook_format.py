"""The layout of hooks, of their payloads and of their answers that Claude, Codex, Gemini and Qwen share."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


@value
class Group:
    """One hook: when it is called, for which tools, what is run, and what this client alone knows of."""

    event: str
    command: str
    timeout: int
    matcher: str | None = None
    extra: Mapping[str, Any] | None = None


def hooks_layout(groups: Iterable[Group]) -> dict[str, Any]:
    """The table of hooks as it stands in the settings of these clients."""
    hooks: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        hook = {"type": "command", "command": group.command, "timeout": group.timeout, **(group.extra or {})}
        listed: dict[str, Any] = {} if group.matcher is None else {"matcher": group.matcher}
        hooks.setdefault(group.event, []).append({**listed, "hooks": [hook]})
    return {"hooks": hooks}


def deny_both(event_name: str, reason: str) -> dict[str, Any]:
    """A refusal of a tool call in both forms, since some of these clients know only one of them."""
    said = readable(reason)
    return {
        "decision": "block",
        "reason": said,
        "hookSpecificOutput": {
            "hookEventName": event_name,
            "permissionDecision": "deny",
            "permissionDecisionReason": said,
        },
    }


def context(event_name: str, text: str) -> dict[str, Any]:
    """Something that the model is told with this event."""
    return {"hookSpecificOutput": {"hookEventName": event_name, "additionalContext": readable(text)}}


def block(reason: str) -> dict[str, Any]:
    """A refusal of anything but a tool call: the end of a turn, or a change of settings."""
    return {"decision": "block", "reason": readable(reason)}


def readable(text: str) -> str:
    """The text without halves of characters, as odd file names bring them, and never empty.

    Strict readers drop an answer with either, and then let the edit pass.
    """
    return text.encode("utf-8", "replace").decode("utf-8").strip() or "Landlane refuses this"


def cut(text: str, most_bytes: int) -> str:
    """The text, cut with a note where the client would cut it itself."""
    whole = readable(text).encode("utf-8")
    if len(whole) <= most_bytes:
        return text
    note = "\n[cut here; `landlane status` tells the rest]"
    return whole[: most_bytes - len(note)].decode("utf-8", "ignore") + note


def line(answer: Mapping[str, Any]) -> str:
    """An answer as one line of JSON."""
    import json  # noqa: PLC0415 - never on the way of a hook

    return json.dumps(answer) + "\n"


def is_refusing(exit_code: int, stdout: str) -> bool:
    """Whether these clients refuse a tool call on such an answer."""
    import json  # noqa: PLC0415 - never on the way of a hook

    if exit_code:
        return exit_code == 2
    try:
        answer = as_table(json.loads(stdout), "the answer")
        specific = table_of(answer, "hookSpecificOutput")
    except (ValueError, Malformed):
        return False
    return answer.get("decision") == "block" or specific.get("permissionDecision") == "deny"


def text_of(payload: Mapping[str, Any], key: str, is_needed: bool = False) -> str:
    """A text of a payload; absent is empty, unless it is needed.

    Raises:
        Malformed: it is something else, or is missing.
    """
    found = payload.get(key)
    if found is None and not is_needed:
        return ""
    if not isinstance(found, str) or (is_needed and not found):
        raise odd(f"`{key}` is not a text")
    return found


def table_of(payload: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A table of a payload; absent is empty.

    Raises:
        Malformed: it is something else.
    """
    found = payload.get(key)
    return {} if found is None else as_table(found, f"`{key}`")


def as_table(found: Any, what: str) -> Mapping[str, Any]:
    """The same, known to be a table.

    Raises:
        Malformed: it is something else.
    """
    if not _is_table(found):
        raise odd(f"{what} is not a table")
    return found


def _is_table(found: object) -> bool:
    return isinstance(found, dict)


def path_of(payload: Mapping[str, Any], key: str, cwd: str) -> str:
    """A path of a payload, from the root of the file system.

    Raises:
        Malformed: it is no path, or nobody can say where it begins.
    """
    return placed(text_of(payload, key, is_needed=True), cwd)


def placed(path: str, cwd: str) -> str:
    """A path as a client names it, from the root of the file system.

    Raises:
        Malformed: it is no path, or nobody can say where it begins.
    """
    if "\0" in path or not (path.startswith("/") or cwd.startswith("/")):
        raise odd("a path that leads nowhere")
    return path if path.startswith("/") else f"{cwd.rstrip('/')}/{path}"


def odd(what: str) -> Malformed:
    """The error for a payload that no release of the client is known to send."""
    return Malformed(
        f"the hook was called with something it cannot read: {what}",
        code="HOOK_INPUT",
        hint="run `landlane doctor`; the client may be newer than this version of Landlane",
    )
