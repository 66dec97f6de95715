"""What Copilot CLI's hooks say and want to hear. A payload names no event, so the hook's argument does."""

from __future__ import annotations

from landlane.clients import shared_hook_format as shapes
from landlane.clients.copilot.tools import SHELLS
from landlane.errors import Malformed
from landlane.protocol import hook_events as words
from landlane.protocol.hook_events import HookEvent, HookOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookAnswer


NAME = "copilot"
TITLE = "Copilot CLI"

BEFORE_TOOL = "preToolUse"

KINDS = {
    "sessionStart": words.START,
    "userPromptSubmitted": words.PROMPT,
    BEFORE_TOOL: words.BEFORE,
    "postToolUse": words.AFTER,
    "postToolUseFailure": words.AFTER,
    "agentStop": words.STOP,
    "subagentStart": words.CHILD_START,
    "subagentStop": words.CHILD_STOP,
    "sessionEnd": words.END,
}
_TOLD = (words.START, words.PROMPT, words.BEFORE, words.AFTER, words.CHILD_START)


def read(word: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
    """One call of a hook, in our words.

    Raises:
        Malformed: no release is known to send this.
    """
    if not word:
        raise shapes.odd("the hook's command does not name its event")
    said = shapes.as_table(payload, "the input")
    kind = KINDS.get(word, words.OTHER_KIND)
    own = shapes.text_of(said, "sessionId", is_needed=True)
    agent = shapes.text_of(said, "agentId")
    if agent and kind == words.STOP:
        kind = words.OTHER_KIND  # its end is told by subagentStop
    facts: dict[str, Any] = {
        "client": NAME,
        "kind": kind,
        # A subagent calls itself its session; whose subagent it is stands beside it.
        "session": (shapes.text_of(said, "parentAgentId") or own) if agent else own,
        "agent": agent,
        "agent_type": shapes.text_of(said, "agentType"),
        "cwd": shapes.text_of(said, "cwd") or environment.get("COPILOT_PROJECT_DIR", ""),
    }
    if kind in (words.BEFORE, words.AFTER):
        return HookEvent(**facts, **_tool_facts(said, facts["cwd"]))
    source = shapes.text_of(said, "source") or shapes.text_of(said, "reason")
    return HookEvent(**facts, source=source, is_again=said.get("stop_hook_active") is True)


def _tool_facts(said: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """What a tool is about to do, or has done, with which files."""
    name = shapes.text_of(said, "toolName", is_needed=True)
    given = _arguments(said)
    if name in ("edit", "create") or (name == "str_replace_editor" and given.get("command") != "view"):
        return {"tool_name": name, "tool": words.EDIT, "paths": (shapes.path_of(given, "path", cwd),)}
    if name == "apply_patch":
        return {"tool_name": name, "tool": words.EDIT, "paths": _patched(given, cwd)}
    if name == "view":
        return {"tool_name": name, "tool": words.READ, "paths": (shapes.path_of(given, "path", cwd),)}
    if name in SHELLS:
        return {
            "tool_name": name,
            "tool": words.SHELL,
            "command": shapes.text_of(given, "command") or shapes.text_of(given, "input"),
            "is_background": given.get("mode") == "async" or given.get("detach") is True,
        }
    return {"tool_name": name, "tool": words.OTHER}


def _arguments(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of the tool, which may be JSON in a text, or the text of a patch."""
    given = said.get("toolArgs")
    if not isinstance(given, str):
        return shapes.table_of(said, "toolArgs")
    if not given.lstrip().startswith("{"):
        return {"input": given}
    import json  # noqa: PLC0415 - never on the way of a hook

    try:
        return shapes.as_table(json.loads(given), "`toolArgs`")
    except (ValueError, RecursionError):
        raise shapes.odd("`toolArgs` is no JSON") from None


def _patched(given: Mapping[str, Any], cwd: str) -> tuple[str, ...]:
    from landlane.clients.patch_paths import patched_paths  # noqa: PLC0415 - some models only

    patch = shapes.text_of(given, "input") or shapes.text_of(given, "patch", is_needed=True)
    return tuple(shapes.placed(path, cwd) for path in patched_paths(patch))


def say(event: HookEvent, answer: HookAnswer) -> HookOutput:
    """An answer as Copilot wants it."""
    text = answer.text
    if answer.verdict == words.DENY and event.kind == words.BEFORE:
        return _deny(text)
    if answer.verdict == words.HOLD and event.kind == words.STOP and not event.is_again:
        return HookOutput(stdout=shapes.line(shapes.block(text)))
    if text and answer.verdict in (words.INFORM, words.DENY) and event.kind in _TOLD:
        return HookOutput(stdout=shapes.line({"additionalContext": shapes.readable(text)}))
    return HookOutput()


def refuse(word: str, text: str) -> HookOutput:
    """Refuse what is about to happen, whatever it is. Other events than a tool call cannot be refused."""
    if word in ("", BEFORE_TOOL):
        return _deny(text)
    return HookOutput(stderr=shapes.readable(text) + "\n")


def _deny(text: str) -> HookOutput:
    said = {"permissionDecision": "deny", "permissionDecisionReason": shapes.readable(text)}
    return HookOutput(stdout=shapes.line(said))


def is_denial(word: str, exit_code: int, stdout: str) -> bool:
    """Whether Copilot refuses on such an answer: a failing guard is a no, an unreadable one a yes."""
    if word not in ("", BEFORE_TOOL) or exit_code:
        return word in ("", BEFORE_TOOL)
    import json  # noqa: PLC0415 - never on the way of a hook

    try:
        answer = shapes.as_table(json.loads(stdout), "the answer")
    except (ValueError, Malformed):
        return False
    return answer.get("permissionDecision") == "deny"
