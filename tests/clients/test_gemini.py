"""Gemini CLI: payloads as it sent them, and the answers that it obeyed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from landlane.clients.gemini import hook as gemini
from landlane.errors import Malformed
from landlane.protocol import hook_events as words

pytestmark = pytest.mark.unit

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
        ("replace", EDIT["tool_input"], words.EDIT, ("/repo/calc.py",)),
        ("write_file", {"file_path": "new.py", "content": "x=2\n"}, words.EDIT, ("/repo/new.py",)),
        ("read_file", {"file_path": "calc.py"}, words.READ, ("/repo/calc.py",)),
        ("read_many_files", {"include": ["calc.py", "src/**"]}, words.READ, ("/repo/calc.py",)),
        ("run_shell_command", {"command": "echo hi", "description": "x"}, words.SHELL, ()),
        ("invoke_agent", {"agent_name": "generalist", "prompt": "fix"}, words.OTHER, ()),
    ],
)
def test_tools_are_known_by_what_they_do(name: str, given: object, tool: str, paths: tuple[str, ...]) -> None:
    event = read("BeforeTool", tool_name=name, tool_input=given)
    assert (event.kind, event.tool, event.paths, event.session) == (words.BEFORE, tool, paths, "e09ad528")


def test_a_shell_runs_where_it_is_told_to() -> None:
    given = {"command": "make", "dir_path": "sub", "is_background": True}
    event = read("BeforeTool", tool_name="run_shell_command", tool_input=given)
    assert (event.command, event.cwd, event.is_background) == ("make", "/repo/sub", True)


@pytest.mark.parametrize(
    ("name", "more", "kind", "source"),
    [
        ("SessionStart", {"source": "startup"}, words.START, "startup"),
        ("BeforeAgent", {"prompt": "go"}, words.PROMPT, ""),
        ("AfterAgent", {"prompt": "go", "prompt_response": "done"}, words.STOP, ""),
        ("SessionEnd", {"reason": "exit"}, words.END, "exit"),
        ("PreCompress", {"trigger": "auto"}, words.OTHER_KIND, ""),
    ],
)
def test_events_are_known_by_their_names(name: str, more: dict[str, Any], kind: str, source: str) -> None:
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
def test_odd_payloads_are_refused_and_not_guessed_at(payload: Any) -> None:
    with pytest.raises(Malformed) as caught:
        gemini.read("BeforeTool", payload, {})
    assert caught.value.code == "HOOK_INPUT"


def repo(name: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": "news"}}


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("BeforeTool", words.NOTHING, None),
        ("BeforeTool", words.deny("held by bob"), {"decision": "block", "reason": "held by bob"}),
        ("BeforeTool", words.inform("news"), {"systemMessage": "news"}),
        ("AfterTool", words.inform("news"), repo("AfterTool")),
        ("SessionStart", words.inform("news"), repo("SessionStart")),
        ("BeforeAgent", words.inform("news"), repo("BeforeAgent")),
        (
            "AfterAgent",
            words.HookAnswer(verdict=words.HOLD, text="left"),
            {"decision": "block", "reason": "left"},
        ),
        ("SessionEnd", words.inform("news"), None),
    ],
)
def test_answers_are_exactly_what_it_obeys(name: str, answer: words.HookAnswer, said: object) -> None:
    spoken = gemini.render(read(name, **EDIT), answer)
    assert (spoken.exit_code, spoken.stderr) == (0, "")
    assert (json.loads(spoken.stdout) if spoken.stdout else None) == said


def test_the_end_of_a_turn_is_held_once() -> None:
    event = read("AfterAgent", stop_hook_active=True)
    assert gemini.render(event, words.HookAnswer(verdict=words.HOLD, text="left")).stdout == ""


def test_what_cannot_be_read_is_refused_only_where_a_tool_is_about_to_run() -> None:
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
