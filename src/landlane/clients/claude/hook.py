"""Claude Code: what its hooks are told, and how they answer."""

from __future__ import annotations

from landlane.clients.claude.tools import EDITS, READS, SHELLS
from landlane.clients.shared_hook_format import (
    as_table,
    block,
    context,
    cut,
    deny_both,
    is_refusing,
    line,
    path_of,
    readable,
    table_of,
    text_of,
)
from landlane.protocol.hook_events import (
    AFTER,
    BEFORE,
    CHILD_START,
    CHILD_STOP,
    DENY,
    EDIT,
    END,
    HOLD,
    OTHER,
    OTHER_KIND,
    PROMPT,
    READ,
    SETTINGS,
    SHELL,
    SILENT,
    START,
    STOP,
    HookAnswer,
    HookEvent,
    HookOutput,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


NAME = "claude"
TITLE = "Claude Code"

KINDS = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PreToolUse": BEFORE,
    "PostToolUse": AFTER,
    "PostToolUseFailure": AFTER,
    "Stop": STOP,
    "SubagentStart": CHILD_START,
    "SubagentStop": CHILD_STOP,
    "SessionEnd": END,
    "ConfigChange": SETTINGS,
}


GUARDS = ("PreToolUse", "ConfigChange")
_FAILED = "failed"

# Of more than 10,000 characters the model sees only the beginning.
_MOST_BYTES = 9_900

# Where the model is told something with `additionalContext`.
_TELLS = {
    START: "SessionStart",
    PROMPT: "UserPromptSubmit",
    BEFORE: "PreToolUse",
    CHILD_START: "SubagentStart",
}


def read(word: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """What Claude Code says on a hook's standard input.

    Raises:
        Malformed: it is nothing that Claude Code is known to say.
    """
    said = as_table(payload, "the input")
    event_name = text_of(said, "hook_event_name") or word
    session = text_of(said, "session_id", is_needed=True)
    kind = KINDS.get(event_name) or KINDS.get(word, OTHER_KIND)
    if _is_copilot(session, environment):
        kind = OTHER_KIND
    facts: dict[str, Any] = {
        "client": NAME,
        "kind": kind,
        "session": session,
        "agent": text_of(said, "agent_id"),
        "agent_type": text_of(said, "agent_type"),
        "cwd": text_of(said, "cwd") or environment.get("CLAUDE_PROJECT_DIR", ""),
    }
    if kind in (BEFORE, AFTER):
        source = _FAILED if event_name == "PostToolUseFailure" else ""
        return HookEvent(**facts, source=source, **_tool_facts(said, facts["cwd"]))
    if kind in (STOP, CHILD_STOP):
        again = said.get("stop_hook_active") is True
        return HookEvent(**facts, is_again=again, is_background=bool(said.get("background_tasks")))
    if kind == SETTINGS:
        path = text_of(said, "file_path")
        return HookEvent(**facts, source=text_of(said, "source"), settings_path=path)
    return HookEvent(**facts, source=text_of(said, "source") or text_of(said, "reason"))


def _is_copilot(session: str, environment: Mapping[str, str]) -> bool:
    """Whether Copilot CLI calls, which runs the hooks in Claude's settings too, beside its own.

    Taken for Claude, one session of Copilot would be two, and stand in its own way.
    """
    return "COPILOT_PROJECT_DIR" in environment and environment.get("CLAUDE_CODE_SESSION_ID") != session


def _tool_facts(said: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """What a tool is about to do, or has done, with which files."""
    name = text_of(said, "tool_name", is_needed=True)
    given = table_of(said, "tool_input")
    facts: dict[str, Any] = {"tool_name": name, "call": text_of(said, "tool_use_id")}
    if name in EDITS:
        return {**facts, "tool": EDIT, "paths": (path_of(given, EDITS[name], cwd),)}
    if name in SHELLS:
        # A monitor is a shell that goes on behind the agent's back, like one that is told to.
        goes_on = name == "Monitor" or given.get("run_in_background") is True
        return {**facts, "tool": SHELL, "command": text_of(given, "command"), "is_background": goes_on}
    if name in READS:
        return {**facts, "tool": READ, "paths": (path_of(given, READS[name], cwd),)}
    return {**facts, "tool": OTHER}


def say(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """An answer in the form that Claude Code obeys at this event."""
    if answer.verdict == SILENT or event.kind in (END, OTHER_KIND):
        return HookOutput()
    text = cut(answer.text, _MOST_BYTES)
    if answer.verdict == DENY and event.kind == BEFORE:
        return HookOutput(stdout=line(deny_both("PreToolUse", text)))
    if answer.verdict == DENY and event.kind in (PROMPT, SETTINGS):
        return HookOutput(stdout=line(block(text)))
    if event.kind in (STOP, CHILD_STOP):
        # Held once: an agent that cannot do what is asked must be able to end.
        holds = answer.verdict in (HOLD, DENY) and not event.is_again
        return HookOutput(stdout=line(block(text) if holds else {"systemMessage": readable(text)}))
    if event.kind == AFTER:
        name = "PostToolUseFailure" if event.source == _FAILED else "PostToolUse"
        return HookOutput(stdout=line(context(name, text)))
    if event.kind in _TELLS:
        return HookOutput(stdout=line(context(_TELLS[event.kind], text)))
    return HookOutput(stdout=line({"systemMessage": readable(text)}))


def refuse(word: str, text: str) -> HookOutput:
    """A refusal for a call that could not even be read.

    Exit 2 refuses at every event, the end of a turn and a prompt too; where nothing is guarded it is exit 1,
    which shows the text and goes on.
    """
    return HookOutput(exit_code=2 if not word or word in GUARDS else 1, stderr=readable(text) + "\n")


def is_denial(word: str, exit_code: int, stdout: str) -> bool:
    """Whether Claude Code would refuse the tool call on this answer."""
    return word in ("", *GUARDS) and is_refusing(exit_code, stdout)
