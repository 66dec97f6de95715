"""Find the exit code of a shell command in the payload of a hook, wherever the client puts it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookEvent

_MARK = "exit code"
_BEFORE = ("", "<exited with ", "exited with ", "process exited with ", "command exited with ")
_RESULTS = ("tool_response", "toolResult", "tool_output", "tool_result", "output", "error", "result")
_FAILURE_EVENTS = ("claude", "qwen")
_NESTED = ("metadata", "returnDisplay", "llmContent", "textResultForLlm", "stdout", "output", "text", "error")


def exit_code_of(event: HookEvent, payload: Mapping[str, Any]) -> int | None:
    """Return the exit code of a shell command; None where the client does not report it."""
    if event.is_background:
        return None
    for name in _RESULTS:
        code = _find(payload.get(name), 0)
        if code is not None:
            return code
    if event.client in _FAILURE_EVENTS:  # they have an event for failures, so any other call succeeded
        return 1 if event.source else 0
    return None


def _find(item: Any, depth: int) -> int | None:
    if isinstance(item, str):
        return _find_in_text(item)
    if item.__class__ is not dict or depth > 2:
        return None
    table: Mapping[str, Any] = item
    for name in ("exit_code", "exitCode", "exit", "code"):
        code = table.get(name)
        if isinstance(code, int) and not isinstance(code, bool) and -256 < code < 256:
            return code
    return next((code for name in _NESTED if (code := _find(table.get(name), depth + 1)) is not None), None)


def _find_in_text(text: str) -> int | None:
    """Return the number after `exit code` at the start of a line, near the start or the end of a text."""
    lines = text[:2000].splitlines()[:8] + text[-2000:].splitlines()[-8:]
    for line in lines:
        before, mark, after = line.strip().lower().partition(_MARK)
        word = after.strip(" :.").split(" ", 1)[0].rstrip(".,;>)") if mark and before in _BEFORE else ""
        if word.isdecimal() and len(word) <= 3:
            return int(word)
    return None
