"""Qwen Code: payloads as it sent them, and the answers that it obeyed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from landlane.clients.registry import hooks_of
from landlane.errors import Malformed
from landlane.protocol import hook_events as words

pytestmark = pytest.mark.unit

qwen = hooks_of("qwen")

HEAD: dict[str, Any] = {
    "session_id": "92b6941d",
    "transcript_path": "/home/.qwen/projects/-repo/chats/92b6941d.jsonl",
    "cwd": "/repo",
    "timestamp": "2026-11-16T04:24:46.636Z",
    "permission_mode": "yolo",
    "prompt_id": "92b6941d########0",
}
EDIT: dict[str, Any] = {
    "tool_name": "edit",
    "tool_input": {"file_path": "/repo/calc.py", "old_string": "a - b", "new_string": "a + b"},
    "tool_use_id": "toolu_1794803086635_pj0cx8fcl",
    "tool_call_id": "call_3",
}


def read(name: str, **more: Any) -> words.HookEvent:
    return qwen.read(name, {**HEAD, "hook_event_name": name, **more}, {})


@pytest.mark.parametrize(
    ("name", "given", "tool", "paths"),
    [
        ("edit", EDIT["tool_input"], words.ToolAction.EDIT, ("/repo/calc.py",)),
        (
            "write_file",
            {"file_path": "/repo/new.py", "content": "x=2\n"},
            words.ToolAction.EDIT,
            ("/repo/new.py",),
        ),
        ("notebook_edit", {"notebook_path": "/repo/a.ipynb"}, words.ToolAction.EDIT, ("/repo/a.ipynb",)),
        ("read_file", {"file_path": "/repo/calc.py"}, words.ToolAction.READ, ("/repo/calc.py",)),
        ("run_shell_command", {"command": "echo hi", "is_background": False}, words.ToolAction.SHELL, ()),
        ("monitor", {"command": "tail -f x"}, words.ToolAction.SHELL, ()),
        ("agent", {"description": "sub", "prompt": "fix"}, words.ToolAction.OTHER, ()),
    ],
)
def test_tools_are_recognized(name: str, given: object, tool: str, paths: tuple[str, ...]) -> None:
    event = read("PreToolUse", tool_name=name, tool_input=given)
    assert (event.kind, event.tool, event.paths) == (words.HookEventKind.BEFORE, tool, paths)
    assert event.is_background is (name == "monitor")


@pytest.mark.parametrize(
    ("name", "more", "kind"),
    [
        ("SessionStart", {"source": "startup", "model": "scripted"}, words.HookEventKind.START),
        ("UserPromptSubmit", {"prompt": "go", "submitted_prompt": "go"}, words.HookEventKind.PROMPT),
        ("UserPromptSubmit", {"prompt": ""}, words.HookEventKind.OTHER),
        ("Stop", {"last_assistant_message": "done"}, words.HookEventKind.STOP),
        ("Notification", {"message": "Successfully authenticated"}, words.HookEventKind.OTHER),
    ],
)
def test_prompt_without_text_is_not_a_prompt(name: str, more: dict[str, Any], kind: str) -> None:
    assert read(name, **more).kind == kind


def test_subagent_is_identified() -> None:
    event = read("PreToolUse", **EDIT, agent_id="general-purpose-call_9")
    assert (event.session, event.agent) == ("92b6941d", "general-purpose-call_9")
    assert event.call == "toolu_1794803086635_pj0cx8fcl"
    assert read("SubagentStart", agent_id="general-purpose-call_9").kind == words.HookEventKind.CHILD_START
    assert read("SubagentStop", agent_id="general-purpose-call_9").kind == words.HookEventKind.CHILD_STOP


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "text",
        {},
        {**HEAD, **EDIT, "session_id": None},
        {**HEAD, **EDIT, "agent_id": 4},
        {**HEAD, "tool_name": "edit", "tool_input": []},
        {**HEAD, "tool_name": "edit", "tool_input": {"file_path": ""}},
        {**HEAD, "tool_name": ["edit"], "tool_input": {}},
        {**HEAD, "tool_name": "run_shell_command", "tool_input": {"command": {"a": 1}}},
    ],
)
def test_unknown_payloads_are_refused_and_not_guessed(payload: Any) -> None:
    with pytest.raises(Malformed) as caught:
        qwen.read("PreToolUse", payload, {})
    assert caught.value.code == "HOOK_INPUT"


def context(name: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": "news"}}


DENIED = {
    "decision": "block",
    "reason": "held by bob",
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "held by bob",
    },
}


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("PreToolUse", words.NOTHING, None),
        ("PreToolUse", words.deny("held by bob"), DENIED),
        ("PreToolUse", words.inform("news"), {"systemMessage": "news"}),
        ("PostToolUse", words.inform("news"), context("PostToolUse")),
        ("PostToolUseFailure", words.inform("news"), context("PostToolUseFailure")),
        ("SessionStart", words.inform("news"), context("SessionStart")),
        ("UserPromptSubmit", words.inform("news"), context("UserPromptSubmit")),
        (
            "Stop",
            words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left"),
            {"decision": "block", "reason": "left"},
        ),
        ("SubagentStart", words.inform("news"), None),
    ],
)
def test_answers_have_the_form_that_the_client_obeys(
    name: str, answer: words.HookAnswer, expected: object
) -> None:
    output = qwen.render(read(name, **EDIT, prompt="go"), answer)
    assert (output.exit_code, output.stderr) == (0, "")
    assert (json.loads(output.stdout) if output.stdout else None) == expected


def test_the_end_of_a_turn_is_held_once() -> None:
    event = read("Stop", stop_hook_active=True)
    assert qwen.render(event, words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left")).stdout == ""


def test_unreadable_payload_is_refused_only_before_a_tool_call() -> None:
    assert qwen.refuse("PreToolUse", "broken").exit_code == 2
    assert qwen.refuse("UserPromptSubmit", "broken").exit_code == 0


@pytest.mark.parametrize(("exit_code", "is_denied"), [(0, False), (1, False), (2, True), (127, False)])
def test_only_exit_two_denies(exit_code: int, is_denied: bool) -> None:
    assert qwen.is_denial("PreToolUse", exit_code, "") is is_denied
