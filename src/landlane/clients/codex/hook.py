"""Codex: what its hooks are told, and how they answer."""

from __future__ import annotations

from landlane.clients.codex import tools
from landlane.clients.patch_paths import patched_paths
from landlane.clients.shared_hook_format import (
    as_table,
    block,
    context,
    cut,
    deny_both,
    is_refusing,
    line,
    placed,
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

NAME = "codex"
TITLE = "Codex"

KINDS = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PreToolUse": BEFORE,
    "PostToolUse": AFTER,
    "Stop": STOP,
    "SubagentStart": CHILD_START,
    "SubagentStop": CHILD_STOP,
    "SessionEnd": END,
}
GUARDS = ("PreToolUse",)

# Codex keeps 2,500 tokens of context from a hook, at four bytes each, and moves the rest into a file.
_MOST_BYTES = 9_900

_TELLS = {
    START: "SessionStart",
    PROMPT: "UserPromptSubmit",
    BEFORE: "PreToolUse",
    AFTER: "PostToolUse",
    CHILD_START: "SubagentStart",
}


def read(word: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """What Codex says on a hook's standard input.

    Raises:
        Malformed: it is nothing that Codex is known to say.
    """
    said = as_table(payload, "the input")
    kind = KINDS.get(text_of(said, "hook_event_name")) or KINDS.get(word, OTHER_KIND)
    facts: dict[str, Any] = {
        "client": NAME,
        "kind": kind,
        "session": text_of(said, "session_id", is_needed=True),
        "agent": text_of(said, "agent_id"),
        "agent_type": text_of(said, "agent_type"),
        "cwd": text_of(said, "cwd"),
    }
    if kind in (BEFORE, AFTER):
        return HookEvent(**facts, **_tool_facts(said, facts["cwd"]))
    if kind in (STOP, CHILD_STOP):
        return HookEvent(**facts, is_again=said.get("stop_hook_active") is True)
    return HookEvent(**facts, source=text_of(said, "source") or text_of(said, "reason"))


def _tool_facts(said: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    name = text_of(said, "tool_name", is_needed=True)
    facts: dict[str, Any] = {"tool_name": name, "call": text_of(said, "tool_use_id")}
    if name == tools.PATCH:
        patch = text_of(table_of(said, "tool_input"), "command", is_needed=True)
        return {**facts, "tool": EDIT, "paths": tuple(placed(path, cwd) for path in patched_paths(patch))}
    if name == tools.SHELL:
        return {**facts, "tool": SHELL, "command": text_of(table_of(said, "tool_input"), "command")}
    return {**facts, "tool": OTHER}


def say(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """An answer in the form that Codex obeys at this event: one key too many, and it obeys nothing."""
    if answer.verdict == SILENT or event.kind in (END, OTHER_KIND):
        return HookOutput()
    text = cut(answer.text, _MOST_BYTES)
    if answer.verdict == DENY and event.kind == BEFORE:
        return HookOutput(stdout=line(deny_both("PreToolUse", _unended(text))))
    if answer.verdict == DENY and event.kind == PROMPT:
        return HookOutput(stdout=line(block(text)))
    if event.kind in (STOP, CHILD_STOP):
        # Held once: Codex would hold an agent for ever.
        holds = answer.verdict in (HOLD, DENY) and not event.is_again
        return HookOutput(stdout=line(block(text) if holds else {"systemMessage": readable(text)}))
    return HookOutput(stdout=line(context(_TELLS[event.kind], text)))


def refuse(word: str, text: str) -> HookOutput:
    """A refusal for a call that could not even be read; where nothing is guarded, a failure that is shown."""
    return HookOutput(exit_code=2 if not word or word in GUARDS else 1, stderr=_unended(text) + "\n")


def _unended(text: str) -> str:
    """A reason without its last full stop: Codex puts `. Command: …` behind it."""
    return readable(text).removesuffix(".")


def is_denial(word: str, exit_code: int, stdout: str) -> bool:
    """Whether Codex would refuse the tool call on this answer."""
    return word in ("", *GUARDS) and is_refusing(exit_code, stdout) and (exit_code == 2 or _is_known(stdout))


def _is_known(stdout: str) -> bool:
    """Whether Codex knows every key of an answer; with any other it takes no notice of all the rest."""
    import json  # noqa: PLC0415 - never on the way of a hook

    answer = as_table(json.loads(stdout), "the answer")
    specific = table_of(answer, "hookSpecificOutput")
    known = {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    return set(answer) <= {"decision", "reason", "hookSpecificOutput"} and set(specific) <= known
