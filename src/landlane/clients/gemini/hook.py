"""What Gemini CLI's hooks say and want to hear. Its subagents are not told apart from their session."""

from __future__ import annotations

from landlane.clients import shared_hook_format as shapes
from landlane.clients.gemini.tools import EDITS, READS, SHELL
from landlane.protocol import hook_events as words
from landlane.protocol.hook_events import HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookAnswer


NAME = "gemini"
TITLE = "Gemini CLI"

BEFORE_TOOL = "BeforeTool"

KINDS = {
    "SessionStart": words.START,
    "BeforeAgent": words.PROMPT,
    BEFORE_TOOL: words.BEFORE,
    "AfterTool": words.AFTER,
    "AfterAgent": words.STOP,
    "SessionEnd": words.END,
}
_GLOB = "*?[{!"
_TOLD = (words.START, words.PROMPT, words.AFTER)


def read(word: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """One call of a hook, in our words.

    Raises:
        Malformed: no release is known to send this.
    """
    said = shapes.as_table(payload, "the input")
    event_name = shapes.text_of(said, "hook_event_name") or word
    kind = KINDS.get(event_name, words.OTHER_KIND)
    facts: dict[str, Any] = {
        "client": NAME,
        "kind": kind,
        "session": shapes.text_of(said, "session_id", is_needed=True),
        "cwd": shapes.text_of(said, "cwd") or environment.get("GEMINI_PROJECT_DIR", ""),
    }
    if kind in (words.BEFORE, words.AFTER):
        return HookEvent(**{**facts, **_tool_facts(said, facts["cwd"])})
    source = shapes.text_of(said, "source") or shapes.text_of(said, "reason")
    return HookEvent(**facts, source=source, is_again=said.get("stop_hook_active") is True)


def _tool_facts(said: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """What a tool is about to do, or has done, with which files."""
    name = shapes.text_of(said, "tool_name", is_needed=True)
    given = shapes.table_of(said, "tool_input")
    if name in EDITS:
        return {"tool_name": name, "tool": words.EDIT, "paths": (shapes.path_of(given, "file_path", cwd),)}
    if name in READS:
        return {"tool_name": name, "tool": words.READ, "paths": _read_paths(name, given, cwd)}
    if name == SHELL:
        return {
            "tool_name": name,
            "tool": words.SHELL,
            "command": shapes.text_of(given, "command"),
            "cwd": shapes.placed(shapes.text_of(given, "dir_path") or cwd, cwd),
            "is_background": given.get("is_background") is True,
        }
    return {"tool_name": name, "tool": words.OTHER}


def _read_paths(name: str, given: Mapping[str, Any], cwd: str) -> tuple[str, ...]:
    """The files that are read; of those that are read together, the ones that stand there by name."""
    if name == "read_file":
        return (shapes.path_of(given, "file_path", cwd),)
    listed: Any = given.get("include")
    named: list[Any] = listed if listed.__class__ is list else []
    paths = [str(one) for one in named if one]
    return tuple(shapes.placed(path, cwd) for path in paths if not set(_GLOB) & set(path))


def say(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """An answer as Gemini wants it. With a tool call that goes on, only its user can be told anything."""
    text = answer.text
    if answer.verdict == words.DENY and event.kind == words.BEFORE:
        return HookOutput(stdout=shapes.line(shapes.block(text)))
    if answer.verdict == words.HOLD and event.kind == words.STOP and not event.is_again:
        return HookOutput(stdout=shapes.line(shapes.block(text)))
    if text and answer.verdict in (words.INFORM, words.DENY):
        if event.kind in _TOLD:
            event_name = next(name for name, kind in KINDS.items() if kind == event.kind)
            return HookOutput(stdout=shapes.line(shapes.context(event_name, text)))
        if event.kind == words.BEFORE:
            return HookOutput(stdout=shapes.line({"systemMessage": shapes.readable(text)}))
    return HookOutput()


def refuse(word: str, text: str) -> HookOutput:
    """Refuse what is about to happen, whatever it is. Exit 2 at any other event would throw a prompt away."""
    said = shapes.readable(text) + "\n"
    return HookOutput(exit_code=2, stderr=said) if word in ("", BEFORE_TOOL) else HookOutput(stderr=said)


def is_denial(word: str, exit_code: int, stdout: str) -> bool:
    """Whether Gemini refuses on such an answer: any exit from 2 on does, 1 does not."""
    if word not in ("", BEFORE_TOOL):
        return False
    return exit_code >= 2 or (exit_code == 0 and shapes.is_refusing(exit_code, stdout))
