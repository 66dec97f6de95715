"""How a shell command of a coding client ended, wherever the client puts its exit code."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookEvent

_EXIT = "exit code"
_BEFORE = ("", "<exited with ", "exited with ", "process exited with ", "command exited with ")
_RESULTS = ("tool_response", "toolResult", "tool_output", "tool_result", "output", "error", "result")
_TELL_FAILURES = ("claude", "qwen")
_DEEP = ("metadata", "returnDisplay", "llmContent", "textResultForLlm", "stdout", "output", "text", "error")


def exit_code_of(event: HookEvent, said: Mapping[str, Any]) -> int | None:
    """How a shell command ended, as a client tells with its result; nothing where it does not."""
    if event.is_background:
        return None
    for name in _RESULTS:
        found = _exit_in(said.get(name), 0)
        if found is not None:
            return found
    if event.client in _TELL_FAILURES:  # by an event of its own, so that any other call went well
        return 1 if event.source else 0
    return None


def _exit_in(item: Any, depth: int) -> int | None:
    if isinstance(item, str):
        return _exit_said(item)
    if item.__class__ is not dict or depth > 2:
        return None
    table: Mapping[str, Any] = item
    for name in ("exit_code", "exitCode", "exit", "code"):
        code = table.get(name)
        if isinstance(code, int) and not isinstance(code, bool) and -256 < code < 256:
            return code
    return next((code for name in _DEEP if (code := _exit_in(table.get(name), depth + 1)) is not None), None)


def _exit_said(text: str) -> int | None:
    """The number behind `exit code` at the beginning of a line, near the beginning or the end of a text."""
    lines = text[:2000].splitlines()[:8] + text[-2000:].splitlines()[-8:]
    for line in lines:
        before, found, behind = line.strip().lower().partition(_EXIT)
        word = behind.strip(" :.").split(" ", 1)[0].rstrip(".,;>)") if found and before in _BEFORE else ""
        if word.isdecimal() and len(word) <= 3:
            return int(word)
    return None
