"""Cursor: payloads and answers as its documentation has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from landlane.clients.registry import hooks_of
from landlane.errors import Malformed
from landlane.protocol import hook_events as words

pytestmark = pytest.mark.unit

cursor = hooks_of("cursor")

HEAD: dict[str, Any] = {
    "conversation_id": "668320d2",
    "generation_id": "490b90b7",
    "cursor_version": "3.1.0",
    "workspace_roots": ["/repo"],
}
EDIT: dict[str, Any] = {
    "tool_name": "Write",
    "tool_input": {"file_path": "/repo/calc.py", "content": "x"},
    "tool_use_id": "abc123",
}
PATCH = "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"


def read(name: str, **more: Any) -> words.HookEvent:
    return cursor.read(name, {**HEAD, "hook_event_name": name, **more}, {})


@pytest.mark.parametrize(
    ("name", "given", "tool", "paths"),
    [
        ("Write", EDIT["tool_input"], words.ToolAction.EDIT, ("/repo/calc.py",)),
        (
            "StrReplace",
            {"path": "a.py", "old_string": "x", "new_string": "y"},
            words.ToolAction.EDIT,
            ("/repo/a.py",),
        ),
        ("Delete", {"path": "/repo/a.py"}, words.ToolAction.EDIT, ("/repo/a.py",)),
        ("ApplyPatch", PATCH, words.ToolAction.EDIT, ("/repo/a.py",)),
        ("ApplyPatch", {"patch": PATCH}, words.ToolAction.EDIT, ("/repo/a.py",)),
        ("Write", json.dumps({"file_path": "/repo/b.py"}), words.ToolAction.EDIT, ("/repo/b.py",)),
        ("Read", {"file_path": "/repo/calc.py"}, words.ToolAction.READ, ("/repo/calc.py",)),
        ("Shell", {"command": "npm i", "working_directory": "/repo/sub"}, words.ToolAction.SHELL, ()),
        ("Grep", {"pattern": "x"}, words.ToolAction.OTHER, ()),
        (None, {"command": "npm i"}, words.ToolAction.SHELL, ()),
        (None, {"path": "/repo/a.py", "contents": "x"}, words.ToolAction.EDIT, ("/repo/a.py",)),
    ],
)
def test_tools_are_recognized(name: str | None, given: object, tool: str, paths: tuple[str, ...]) -> None:
    event = read("preToolUse", tool_name=name, tool_input=given, tool_use_id="abc123")
    assert (event.kind, event.tool, event.paths, event.call) == (
        words.HookEventKind.BEFORE,
        tool,
        paths,
        "abc123",
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sessionStart", words.HookEventKind.START),
        ("beforeSubmitPrompt", words.HookEventKind.PROMPT),
        ("stop", words.HookEventKind.STOP),
        ("sessionEnd", words.HookEventKind.END),
        ("afterAgentThought", words.HookEventKind.OTHER),
    ],
)
def test_events_are_recognized(name: str, kind: str) -> None:
    event = read(name)
    assert (event.kind, event.session, event.cwd) == (kind, "668320d2", "/repo")


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {**EDIT},
        {**HEAD, "conversation_id": 7, **EDIT},
        {**HEAD, "workspace_roots": [7], **EDIT},
        {**HEAD, "tool_name": "Write", "tool_input": {}},
        {**HEAD, "tool_name": "Write", "tool_input": "{"},
        {**HEAD, "tool_input": {"pattern": "x"}},
        {**HEAD, "workspace_roots": [], "tool_name": "Write", "tool_input": {"path": "relative"}},
    ],
)
def test_unknown_payloads_are_refused_and_not_guessed(payload: Any) -> None:
    with pytest.raises(Malformed) as caught:
        cursor.read("preToolUse", payload, {})
    assert caught.value.code == "HOOK_INPUT"


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("preToolUse", words.NOTHING, {"permission": "allow"}),
        (
            "preToolUse",
            words.deny("held by bob"),
            {"permission": "deny", "user_message": "held by bob", "agent_message": "held by bob"},
        ),
        ("preToolUse", words.inform("news"), {"permission": "allow", "additional_context": "news"}),
        ("postToolUse", words.inform("news"), {"additional_context": "news"}),
        ("sessionStart", words.inform("news"), {"additional_context": "news"}),
        ("beforeSubmitPrompt", words.NOTHING, {"continue": True}),
        ("stop", words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left"), {"followup_message": "left"}),
        ("stop", words.NOTHING, {}),
    ],
)
def test_everything_is_answered(name: str, answer: words.HookAnswer, expected: object) -> None:
    output = cursor.render(read(name, **EDIT), answer)
    assert (output.exit_code, output.stderr) == (0, "")
    assert json.loads(output.stdout) == expected


def test_the_end_of_a_turn_is_held_once() -> None:
    event = read("stop", loop_count=1)
    assert (
        cursor.render(event, words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left")).stdout == "{}\n"
    )


@pytest.mark.parametrize(
    ("exit_code", "stdout", "is_denied"),
    [
        (0, '{"permission": "allow"}', False),
        (0, '{"permission": "deny"}', True),
        (0, "", True),
        (0, "{", True),
        (1, "", True),
    ],
)
def test_everything_but_a_readable_yes_denies(exit_code: int, stdout: str, is_denied: bool) -> None:
    assert cursor.is_denial("preToolUse", exit_code, stdout) is is_denied


def test_unreadable_payload_is_refused_only_before_a_tool_call() -> None:
    output = cursor.refuse("preToolUse", "broken")
    assert cursor.is_denial("preToolUse", output.exit_code, output.stdout)
    assert json.loads(cursor.refuse("beforeSubmitPrompt", "broken").stdout) == {"continue": True}
