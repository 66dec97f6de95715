"""What Qwen Code's hooks say and want to hear: Claude's events and answers, Gemini's tools."""

from __future__ import annotations

from landlane.clients import shared_hook_format as shapes
from landlane.clients.qwen.tools import EDITS, SHELLS
from landlane.protocol import hook_events as words
from landlane.protocol.hook_events import HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookAnswer


NAME = "qwen"
TITLE = "Qwen Code"

BEFORE_TOOL = "PreToolUse"
_FAILED = "PostToolUseFailure"

KINDS = {
    "SessionStart": words.START,
    "UserPromptSubmit": words.PROMPT,
    BEFORE_TOOL: words.BEFORE,
    "PostToolUse": words.AFTER,
    _FAILED: words.AFTER,
    "Stop": words.STOP,
    "SubagentStart": words.CHILD_START,
    "SubagentStop": words.CHILD_STOP,
    "SessionEnd": words.END,
}
_TOLD = (words.START, words.PROMPT, words.AFTER)


def read(word: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """One call of a hook, in our words.

    Raises:
        Malformed: no release is known to send this.
    """
    said = shapes.as_table(payload, "the input")
    event_name = shapes.text_of(said, "hook_event_name") or word
    kind = KINDS.get(event_name, words.OTHER_KIND)
    if kind == words.PROMPT and not said.get("prompt"):
        kind = words.OTHER_KIND  # it comes with every tool result too, where AFTER has just been told
    facts: dict[str, Any] = {
        "client": NAME,
        "kind": kind,
        "session": shapes.text_of(said, "session_id", is_needed=True),
        "agent": shapes.text_of(said, "agent_id"),
        "agent_type": shapes.text_of(said, "agent_type"),
        "cwd": shapes.text_of(said, "cwd") or environment.get("QWEN_PROJECT_DIR", ""),
    }
    if kind in (words.BEFORE, words.AFTER):
        source = event_name if event_name == _FAILED else ""
        return HookEvent(source=source, **{**facts, **_tool_facts(said, facts["cwd"])})
    if kind in (words.STOP, words.CHILD_STOP):
        again = said.get("stop_hook_active") is True
        return HookEvent(**facts, is_again=again, is_background=bool(said.get("background_tasks")))
    return HookEvent(**facts, source=shapes.text_of(said, "source") or shapes.text_of(said, "reason"))


def _tool_facts(said: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """What a tool is about to do, or has done, with which files."""
    name = shapes.text_of(said, "tool_name", is_needed=True)
    given = shapes.table_of(said, "tool_input")
    facts: dict[str, Any] = {"tool_name": name, "call": shapes.text_of(said, "tool_use_id")}
    if name in EDITS:
        return {**facts, "tool": words.EDIT, "paths": (shapes.path_of(given, EDITS[name], cwd),)}
    if name == "read_file":
        return {**facts, "tool": words.READ, "paths": (shapes.path_of(given, "file_path", cwd),)}
    if name in SHELLS:
        return {
            **facts,
            "tool": words.SHELL,
            "command": shapes.text_of(given, "command"),
            "cwd": shapes.placed(shapes.text_of(given, "directory") or cwd, cwd),
            # A monitor is a shell that goes on behind the agent's back, like one that is told to.
            "is_background": name == "monitor" or given.get("is_background") is True,
        }
    return {**facts, "tool": words.OTHER}


def say(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """An answer as Qwen wants it. With a tool call that goes on, only its user can be told anything."""
    text = answer.text
    if answer.verdict == words.DENY and event.kind == words.BEFORE:
        return HookOutput(stdout=shapes.line(shapes.deny_both(BEFORE_TOOL, text)))
    if answer.verdict == words.HOLD and event.kind == words.STOP and not event.is_again:
        return HookOutput(stdout=shapes.line(shapes.block(text)))
    if text and answer.verdict in (words.INFORM, words.DENY):
        if event.kind in _TOLD:
            return HookOutput(stdout=shapes.line(shapes.context(_event_name(event), text)))
        if event.kind == words.BEFORE:
            return HookOutput(stdout=shapes.line({"systemMessage": shapes.readable(text)}))
    return HookOutput()


def _event_name(event: HookEvent) -> str:
    if event.source == _FAILED:
        return _FAILED
    return next(name for name, kind in KINDS.items() if kind == event.kind)


def refuse(word: str, text: str) -> HookOutput:
    """Refuse what is about to happen, whatever it is. Exit 2 at any other event would throw a prompt away."""
    said = shapes.readable(text) + "\n"
    return HookOutput(exit_code=2, stderr=said) if word in ("", BEFORE_TOOL) else HookOutput(stderr=said)


def is_denial(word: str, exit_code: int, stdout: str) -> bool:
    """Whether Qwen refuses on such an answer."""
    return word in ("", BEFORE_TOOL) and shapes.is_refusing(exit_code, stdout)
