"""Gemini CLI: payloads as it sent them, and the answers that it obeyed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from landlane.clients.registry import hooks_of
from landlane.errors import Malformed
from landlane.protocol import hook_events as words

pytestmark = pytest.mark.unit

gemini = hooks_of("gemini")

HEAD: dict[str, Any] = {
    "session_id": "e09ad528",
    "transcript_path": "/home/.gemini/tmp/repo/chats/session.jsonl",
    "cwd": "/repo",
    "timestamp": "2026-11-16T04:24:41.659Z",
}
EDIT: dict[str, Any] = {
    "tool_name": "replace",
    "tool_input": {
        "file_path": "/repo/calc.py",
        "old_string": "a - b",
        "new_string": "a + b",
        "instruction": "fix",
    },
}


def read(name: str, **more: Any) -> words.HookEvent:
    return gemini.read(name, {**HEAD, "hook_event_name": name, **more}, {})


@pytest.mark.parametrize(
    ("name", "given", "tool", "paths"),
    [
        ("replace", EDIT["tool_input"], words.ToolAction.EDIT, ("/repo/calc.py",)),
        ("write_file", {"file_path": "new.py", "content": "x=2\n"}, words.ToolAction.EDIT, ("/repo/new.py",)),
        ("read_file", {"file_path": "calc.py"}, words.ToolAction.READ, ("/repo/calc.py",)),
        ("read_many_files", {"include": ["calc.py", "src/**"]}, words.ToolAction.READ, ("/repo/calc.py",)),
        ("run_shell_command", {"command": "echo hi", "description": "x"}, words.ToolAction.SHELL, ()),
        ("invoke_agent", {"agent_name": "generalist", "prompt": "fix"}, words.ToolAction.OTHER, ()),
    ],
)
def test_tools_are_recognized(name: str, given: object, tool: str, paths: tuple[str, ...]) -> None:
    event = read("BeforeTool", tool_name=name, tool_input=given)
    assert (event.kind, event.tool, event.paths, event.session) == (
        words.HookEventKind.BEFORE,
        tool,
        paths,
        "e09ad528",
    )


def test_shell_runs_in_the_folder_it_names() -> None:
    given = {"command": "make", "dir_path": "sub", "is_background": True}
    event = read("BeforeTool", tool_name="run_shell_command", tool_input=given)
    assert (event.command, event.cwd, event.is_background) == ("make", "/repo/sub", True)


@pytest.mark.parametrize(
    ("name", "more", "kind", "source"),
    [
        ("SessionStart", {"source": "startup"}, words.HookEventKind.START, "startup"),
        ("BeforeAgent", {"prompt": "go"}, words.HookEventKind.PROMPT, ""),
        ("AfterAgent", {"prompt": "go", "prompt_response": "done"}, words.HookEventKind.STOP, ""),
        ("SessionEnd", {"reason": "exit"}, words.HookEventKind.END, "exit"),
        ("PreCompress", {"trigger": "auto"}, words.HookEventKind.OTHER, ""),
    ],
)
def test_events_are_recognized(name: str, more: dict[str, Any], kind: str, source: str) -> None:
    event = read(name, **more)
    assert (event.kind, event.source) == (kind, source)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {**HEAD, **EDIT, "session_id": ""},
        {**HEAD, "tool_input": {}},
        {**HEAD, "tool_name": "replace"},
        {**HEAD, "tool_name": "replace", "tool_input": "x"},
        {**HEAD, "tool_name": "write_file", "tool_input": {"file_path": 4}},
        {**HEAD, "tool_name": "write_file", "tool_input": {"file_path": "a\0b"}},
        {**HEAD, **EDIT, "cwd": ["/repo"]},
        {**HEAD, **EDIT, "hook_event_name": 7},
    ],
)
def test_unknown_payloads_are_refused_and_not_guessed(payload: Any) -> None:
    with pytest.raises(Malformed) as caught:
        gemini.read("BeforeTool", payload, {})
    assert caught.value.code == "HOOK_INPUT"


def context(name: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": "news"}}


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("BeforeTool", words.NOTHING, None),
        ("BeforeTool", words.deny("held by bob"), {"decision": "block", "reason": "held by bob"}),
        ("BeforeTool", words.inform("news"), {"systemMessage": "news"}),
        ("AfterTool", words.inform("news"), context("AfterTool")),
        ("SessionStart", words.inform("news"), context("SessionStart")),
        ("BeforeAgent", words.inform("news"), context("BeforeAgent")),
        (
            "AfterAgent",
            words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left"),
            {"decision": "block", "reason": "left"},
        ),
        ("SessionEnd", words.inform("news"), None),
    ],
)
def test_answers_have_the_form_that_the_client_obeys(
    name: str, answer: words.HookAnswer, expected: object
) -> None:
    output = gemini.render(read(name, **EDIT), answer)
    assert (output.exit_code, output.stderr) == (0, "")
    assert (json.loads(output.stdout) if output.stdout else None) == expected


def test_the_end_of_a_turn_is_held_once() -> None:
    event = read("AfterAgent", stop_hook_active=True)
    assert gemini.render(event, words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left")).stdout == ""


def test_unreadable_payload_is_refused_only_before_a_tool_call() -> None:
    assert gemini.refuse("BeforeTool", "broken").exit_code == 2
    assert gemini.refuse("BeforeAgent", "broken").exit_code == 0


@pytest.mark.parametrize(
    ("exit_code", "stdout", "is_denied"),
    [
        (0, "", False),
        (0, "{", False),
        (0, '{"decision": "block"}', True),
        (1, "", False),
        (2, "", True),
        (127, "", True),
    ],
)
def test_any_exit_from_two_on_denies(exit_code: int, stdout: str, is_denied: bool) -> None:
    assert gemini.is_denial("BeforeTool", exit_code, stdout) is is_denied
