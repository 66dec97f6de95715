"""Claude Code's hooks: payloads as a real run sent them, and the answers that it obeyed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.clients.canary import make_canary
from landlane.clients.claude.hook import TOOLS
from landlane.clients.claude.setup import SETUP
from landlane.clients.registry import hooks_of
from landlane.errors import Malformed
from landlane.protocol.hook_events import (
    NOTHING,
    HookAnswer,
    HookEvent,
    HookOutput,
    HookVerdict,
    deny,
    inform,
    is_guarded,
)
from landlane.values import as_dict

pytestmark = pytest.mark.unit

claude = hooks_of("claude")

BASE = {
    "session_id": "08ea05a4-506b-4000-87ed-ef353541c508",
    "transcript_path": "/home/ann/.claude/projects/-repo/08ea05a4.jsonl",
    "cwd": "/repo",
    "prompt_id": "cea1e5b4-5a44-4fa5-8250-b8969218dd31",
    "permission_mode": "acceptEdits",
    "effort": {"level": "medium"},
}
CHILD = {"agent_id": "a4988447051ecc88d", "agent_type": "general-purpose"}


def tool(name: str, call: str = "toolu_3", event: str = "PreToolUse", **given: Any) -> dict[str, Any]:
    return {"hook_event_name": event, "tool_name": name, "tool_input": given, "tool_use_id": call}


STARTED = {"hook_event_name": "SessionStart", "source": "startup"}
STOPPING = {"hook_event_name": "Stop", "last_assistant_message": "done", "session_crons": []}
EDIT = tool("Edit", file_path="/repo/calc.py", old_string="a - b", new_string="a + b", replace_all=False)
SETTINGS = {
    "hook_event_name": "ConfigChange",
    "source": "local_settings",
    "file_path": "/repo/.claude/settings.local.json",
}
EDITED = {"tool": "edit", "tool_name": "Edit", "call": "toolu_3", "paths": ("/repo/calc.py",)}
SHELL = {"tool": "shell", "tool_name": "Bash", "call": "toolu_3", "command": "ls"}

PAYLOADS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (STARTED, {"kind": "start", "source": "startup"}),
    ({"hook_event_name": "UserPromptSubmit", "prompt": "go"}, {"kind": "prompt"}),
    (EDIT, {"kind": "before", **EDITED}),
    (CHILD | EDIT, {"kind": "before", **EDITED, "agent": CHILD["agent_id"]}),
    (EDIT | {"hook_event_name": "PostToolUse"}, {"kind": "after", **EDITED}),
    (
        tool("Write", file_path="new.py", content=""),
        {"kind": "before", **EDITED, "tool_name": "Write", "paths": ("/repo/new.py",)},
    ),
    (
        tool("NotebookEdit", notebook_path="/repo/a.ipynb", cell_id="1", new_source=""),
        {"kind": "before", **EDITED, "tool_name": "NotebookEdit", "paths": ("/repo/a.ipynb",)},
    ),
    (tool("Bash", command="ls", description="x"), {"kind": "before", **SHELL}),
    (
        tool("Bash", command="ls", run_in_background=True),
        {"kind": "before", **SHELL, "is_background": True},
    ),
    (
        tool("Monitor", command="ls", timeout_ms=1000),
        {"kind": "before", **SHELL, "tool_name": "Monitor", "is_background": True},
    ),
    (
        tool("Bash", event="PostToolUseFailure", command="ls") | {"error": "Exit code 1"},
        {"kind": "after", **SHELL, "source": "failed"},
    ),
    (
        tool("Read", file_path="/repo/calc.py"),
        {"kind": "before", **EDITED, "tool": "read", "tool_name": "Read"},
    ),
    (tool("Agent", prompt="fix"), {"kind": "before", "tool_name": "Agent", "call": "toolu_3"}),
    (STOPPING | {"stop_hook_active": False, "background_tasks": []}, {"kind": "stop"}),
    (
        STOPPING | {"stop_hook_active": True, "background_tasks": [{"id": "b1"}]},
        {"kind": "stop", "is_again": True, "is_background": True},
    ),
    (
        CHILD | {"hook_event_name": "SubagentStart"},
        {"kind": "child-start", "agent": CHILD["agent_id"]},
    ),
    (
        CHILD | {"hook_event_name": "SubagentStop", "stop_hook_active": False, "background_tasks": []},
        {"kind": "child-stop", "agent": CHILD["agent_id"]},
    ),
    ({"hook_event_name": "SessionEnd", "reason": "other"}, {"kind": "end", "source": "other"}),
    (SETTINGS, {"kind": "settings", "source": "local_settings"}),
    ({"hook_event_name": "PreCompact", "trigger": "auto"}, {"kind": "other"}),
]


@pytest.mark.parametrize(("payload", "facts"), PAYLOADS)
def test_payloads_of_claude_are_read(payload: dict[str, Any], facts: dict[str, Any]) -> None:
    expected = HookEvent(client="claude", session=BASE["session_id"], cwd="/repo", **facts)
    assert claude.read("", BASE | payload, {}) == expected


def test_an_event_without_a_known_name_is_the_one_its_command_names() -> None:
    assert is_guarded(claude.read("PreToolUse", BASE | EDIT | {"hook_event_name": "BeforeTool"}, {}))


COPILOT = {"COPILOT_PROJECT_DIR": "/repo", "CLAUDE_PROJECT_DIR": "/repo"}


def test_copilot_running_claudes_hooks_is_left_to_its_own() -> None:
    edit = tool("Edit", path="/repo/calc.py", old_str="a", new_str="b")
    event = claude.read("PreToolUse", BASE | edit, COPILOT)
    assert event.kind == "other"
    assert claude.render(event, deny("no")) == HookOutput()


def test_claude_started_by_copilot_is_still_claude() -> None:
    inherited = COPILOT | {"CLAUDE_CODE_SESSION_ID": str(BASE["session_id"])}
    assert is_guarded(claude.read("PreToolUse", BASE | EDIT, inherited))


@pytest.mark.parametrize(
    "payload",
    [
        [],
        "hello",
        None,
        {},
        BASE | EDIT | {"session_id": 7},
        BASE | EDIT | {"session_id": ""},
        BASE | EDIT | {"tool_name": None},
        BASE | EDIT | {"tool_name": ["Edit"]},
        BASE | EDIT | {"tool_input": "calc.py"},
        BASE | EDIT | {"tool_input": {}},
        BASE | EDIT | {"tool_input": {"file_path": ["a", "b"]}},
        BASE | EDIT | {"tool_input": {"file_path": "a\0b"}},
        BASE | EDIT | {"cwd": "", "tool_input": {"file_path": "calc.py"}},
        BASE | EDIT | {"cwd": {}},
        BASE | tool("Bash", command=["rm", "-rf"]),
        BASE | {"hook_event_name": 3},
    ],
)
def test_unknown_payload_is_refused_and_not_guessed(payload: Any) -> None:
    with pytest.raises(Malformed) as caught:
        claude.read("PreToolUse", payload, {})
    assert caught.value.code == "HOOK_INPUT"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([*EDIT, *BASE, *SETTINGS, *CHILD, "stop_hook_active"]), JSON_VALUES)
def test_any_value_anywhere_is_read_or_refused(key: str, odd: Any) -> None:
    for payload, _ in PAYLOADS:
        try:
            event = claude.read("PreToolUse", BASE | payload | {key: odd}, {})
        except Malformed:
            continue
        fields = as_dict(event)
        assert fields.pop("exit_code") is None  # nothing has ended before it began
        assert all(isinstance(item, str | bool | tuple) for item in fields.values())


def event_of(payload: dict[str, Any]) -> HookEvent:
    return claude.read("", BASE | payload, {})


def specific(name: str, **facts: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, **facts}}


REFUSED = {"decision": "block", "reason": "why"} | specific(
    "PreToolUse", permissionDecision="deny", permissionDecisionReason="why"
)
HELD = {"decision": "block", "reason": "why"}
CHILD_STOPS = CHILD | {"hook_event_name": "SubagentStop"}


@pytest.mark.parametrize(
    ("payload", "answer", "expected"),
    [
        (EDIT, deny("why"), REFUSED),
        (EDIT, inform("why"), specific("PreToolUse", additionalContext="why")),
        (STARTED, inform("why"), specific("SessionStart", additionalContext="why")),
        (
            {"hook_event_name": "UserPromptSubmit"},
            inform("why"),
            specific("UserPromptSubmit", additionalContext="why"),
        ),
        (tool("Bash", event="PostToolUse"), inform("why"), specific("PostToolUse", additionalContext="why")),
        (
            tool("Bash", event="PostToolUseFailure"),
            inform("why"),
            specific("PostToolUseFailure", additionalContext="why"),
        ),
        (
            CHILD | {"hook_event_name": "SubagentStart"},
            inform("why"),
            specific("SubagentStart", additionalContext="why"),
        ),
        (STOPPING, HookAnswer(verdict=HookVerdict.HOLD, text="why"), HELD),
        (CHILD_STOPS, HookAnswer(verdict=HookVerdict.HOLD, text="why"), HELD),
        (
            STOPPING | {"stop_hook_active": True},
            HookAnswer(verdict=HookVerdict.HOLD, text="why"),
            {"systemMessage": "why"},
        ),
        (SETTINGS, deny("why"), HELD),
    ],
)
def test_answers_have_the_form_that_claude_obeys(
    payload: dict[str, Any], answer: HookAnswer, expected: dict[str, Any]
) -> None:
    output = claude.render(event_of(payload), answer)
    assert (output.exit_code, output.stderr) == (0, "")
    assert json.loads(output.stdout) == expected


@pytest.mark.parametrize("payload", [payload for payload, _ in PAYLOADS])
def test_silent_answer_is_empty(payload: dict[str, Any]) -> None:
    assert claude.render(event_of(payload), NOTHING) == HookOutput()


def test_a_long_text_is_cut_where_claude_would_cut_it() -> None:
    output = json.loads(claude.render(event_of(STARTED), inform("é" * 20_000)).stdout)
    text = output["hookSpecificOutput"]["additionalContext"]
    assert len(text.encode()) <= 9_900
    assert "cut here" in text


@pytest.mark.parametrize(("word", "code"), [("", 2), ("PreToolUse", 2), ("ConfigChange", 2), ("Stop", 1)])
def test_an_unreadable_call_is_refused_where_something_is_guarded(word: str, code: int) -> None:
    assert claude.refuse(word, "why") == HookOutput(exit_code=code, stderr="why\n")


@pytest.mark.parametrize(
    ("exit_code", "stdout", "is_refused"),
    [
        (2, "", True),
        (0, json.dumps(REFUSED), True),
        (0, json.dumps(HELD), True),
        (0, "", False),
        (0, "{nope", False),
        (0, "[]", False),
        (0, json.dumps(specific("PreToolUse", additionalContext="x")), False),
        (1, json.dumps(REFUSED), False),
        (127, "", False),
    ],
)
def test_refusals_that_claude_obeys_are_recognized(exit_code: int, stdout: str, is_refused: bool) -> None:
    assert claude.is_denial("PreToolUse", exit_code, stdout) is is_refused


def test_guards_fail_closed_and_reading_does_not() -> None:
    (file,) = SETUP.wanted_files(lambda word, is_guard: f"{word} {is_guard}")
    hooks = file.content["hooks"]
    assert file.path == ".claude/settings.local.json"
    assert set(hooks) == set(claude.kinds)
    guard, snapshot = hooks["PreToolUse"]
    assert set(guard["matcher"].split("|")) == set(TOOLS.guarded)
    command = {"type": "command", "command": "PreToolUse True", "timeout": 30, "onFailure": "block"}
    assert guard["hooks"] == [command]
    assert "onFailure" not in snapshot["hooks"][0]
    assert hooks["ConfigChange"][0]["hooks"][0]["onFailure"] == "block"


@pytest.mark.parametrize(("kind", "tool_kind"), [("edit", "edit"), ("shell", "shell")])
def test_a_canary_is_a_call_that_is_guarded(kind: str, tool_kind: str) -> None:
    canary = make_canary("claude", kind, "/repo", "/repo/a.py", "s", "child")
    event = claude.read(canary.event_name, canary.payload, canary.variables)
    assert (event.tool, event.session, event.agent, is_guarded(event)) == (tool_kind, "s", "child", True)
