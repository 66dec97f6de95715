"""Copilot CLI: payloads as it sent them, and the answers that it obeyed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from landlane.clients.registry import hooks_of
from landlane.errors import Malformed
from landlane.protocol import hook_events as words

pytestmark = pytest.mark.unit

copilot = hooks_of("copilot")

HEAD: dict[str, Any] = {"sessionId": "be7127cd", "timestamp": 1794803077332, "cwd": "/repo"}
SUBAGENT = {
    "sessionId": "0e90e478",
    "agentId": "0e90e478",
    "agentType": "general-purpose",
    "parentAgentId": "be7127cd",
}
PATCH = "*** Begin Patch\n*** Update File: free.py\n@@\n-x = 1\n+x = 5\n*** End Patch\n"
EDIT = {"toolName": "edit", "toolArgs": {"path": "/repo/calc.py", "old_str": "a - b", "new_str": "a + b"}}


def read(word: str, **more: Any) -> words.HookEvent:
    return copilot.read(word, {**HEAD, **more}, {})


@pytest.mark.parametrize(
    ("name", "given", "tool", "paths"),
    [
        ("edit", EDIT["toolArgs"], words.ToolAction.EDIT, ("/repo/calc.py",)),
        ("create", {"path": "new.py", "file_text": "x=2\n"}, words.ToolAction.EDIT, ("/repo/new.py",)),
        ("apply_patch", PATCH, words.ToolAction.EDIT, ("/repo/free.py",)),
        ("apply_patch", {"input": PATCH}, words.ToolAction.EDIT, ("/repo/free.py",)),
        ("str_replace_editor", {"command": "insert", "path": "/repo/a"}, words.ToolAction.EDIT, ("/repo/a",)),
        ("edit", json.dumps({"path": "/repo/a"}), words.ToolAction.EDIT, ("/repo/a",)),
        ("view", {"path": "/repo/calc.py"}, words.ToolAction.READ, ("/repo/calc.py",)),
        ("bash", {"command": "echo hi > made.txt", "description": "x"}, words.ToolAction.SHELL, ()),
        ("task", {"description": "sub", "prompt": "fix"}, words.ToolAction.OTHER, ()),
    ],
)
def test_tools_are_recognized(name: str, given: object, tool: str, paths: tuple[str, ...]) -> None:
    event = read("preToolUse", toolName=name, toolArgs=given)
    assert (event.kind, event.tool, event.paths, event.tool_name) == (
        words.HookEventKind.BEFORE,
        tool,
        paths,
        name,
    )


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("sessionStart", words.HookEventKind.START),
        ("userPromptSubmitted", words.HookEventKind.PROMPT),
        ("agentStop", words.HookEventKind.STOP),
        ("sessionEnd", words.HookEventKind.END),
        ("notification", words.HookEventKind.OTHER),
    ],
)
def test_the_argument_names_the_event(word: str, kind: str) -> None:
    assert read(word).kind == kind


def test_shell_can_run_in_the_background() -> None:
    event = read("preToolUse", toolName="bash", toolArgs={"command": "make", "mode": "async"})
    assert (event.command, event.is_background) == ("make", True)


def test_a_subagent_belongs_to_the_session_that_it_works_for() -> None:
    event = read("preToolUse", **EDIT, **SUBAGENT)
    assert (event.session, event.agent) == ("be7127cd", "0e90e478")
    assert read("agentStop", **SUBAGENT).kind == words.HookEventKind.OTHER
    stop = read("subagentStop", **{**SUBAGENT, "sessionId": "be7127cd"})
    assert (stop.kind, stop.session, stop.agent) == (words.HookEventKind.CHILD_STOP, "be7127cd", "0e90e478")


@pytest.mark.parametrize(
    ("word", "payload"),
    [
        ("", {**HEAD, **EDIT}),
        ("preToolUse", []),
        ("preToolUse", {**EDIT}),
        ("preToolUse", {**HEAD, "sessionId": 7, **EDIT}),
        ("preToolUse", {**HEAD, "toolName": "edit"}),
        ("preToolUse", {**HEAD, "toolName": "edit", "toolArgs": {"path": ["a"]}}),
        ("preToolUse", {**HEAD, "toolName": "edit", "toolArgs": "{"}),
        ("preToolUse", {**HEAD, "toolName": "edit", "toolArgs": "[" * 100_000}),
        ("preToolUse", {**HEAD, "toolName": "edit", "toolArgs": '{"a":' * 100_000}),
        ("preToolUse", {**HEAD, "toolName": "apply_patch", "toolArgs": "nothing"}),
        ("preToolUse", {**HEAD, "toolName": {"a": 1}}),
        ("preToolUse", {**HEAD, "cwd": 3, **EDIT}),
    ],
)
def test_unknown_payloads_are_refused_and_not_guessed(word: str, payload: Any) -> None:
    with pytest.raises(Malformed) as caught:
        copilot.read(word, payload, {})
    assert caught.value.code == "HOOK_INPUT"


@pytest.mark.parametrize(
    ("word", "answer", "expected"),
    [
        ("preToolUse", words.NOTHING, None),
        (
            "preToolUse",
            words.deny("held by bob"),
            {"permissionDecision": "deny", "permissionDecisionReason": "held by bob"},
        ),
        ("preToolUse", words.inform("news"), {"additionalContext": "news"}),
        ("postToolUse", words.inform("news"), {"additionalContext": "news"}),
        ("postToolUseFailure", words.inform("news"), {"additionalContext": "news"}),
        ("sessionStart", words.inform("news"), {"additionalContext": "news"}),
        (
            "agentStop",
            words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left"),
            {"decision": "block", "reason": "left"},
        ),
        ("sessionEnd", words.inform("news"), None),
    ],
)
def test_answers_have_the_form_that_the_client_obeys(
    word: str, answer: words.HookAnswer, expected: object
) -> None:
    output = copilot.render(read(word, **EDIT), answer)
    assert (output.exit_code, output.stderr) == (0, "")
    assert (json.loads(output.stdout) if output.stdout else None) == expected


def test_the_end_of_a_turn_is_held_once() -> None:
    event = read("agentStop", stop_hook_active=True)
    assert copilot.render(event, words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left")).stdout == ""


def test_unreadable_payload_is_refused_only_before_a_tool_call() -> None:
    output = copilot.refuse("preToolUse", "broken")
    assert copilot.is_denial("preToolUse", output.exit_code, output.stdout)
    assert copilot.refuse("agentStop", "broken").stdout == ""


@pytest.mark.parametrize(
    ("exit_code", "stdout", "is_denied"),
    [(0, "", False), (0, "{", False), (0, '{"additionalContext": "x"}', False), (1, "", True), (2, "", True)],
)
def test_a_failing_hook_denies_and_an_unreadable_one_does_not(
    exit_code: int, stdout: str, is_denied: bool
) -> None:
    assert copilot.is_denial("preToolUse", exit_code, stdout) is is_denied
