"""Codex's hooks: payloads as a real run sent them, and the answers that it obeyed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from landlane.clients.canary import make_canary
from landlane.clients.codex.setup import SETUP
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

pytestmark = pytest.mark.unit

codex = hooks_of("codex")

BASE = {
    "session_id": "01a1e29e-e2ee-76d0-a4c5-7fa3257ddbf5",
    "turn_id": "01a1e29e-e31b-7601-b142-b482222d86c1",
    "transcript_path": None,
    "cwd": "/repo",
    "model": "gpt-5.5",
    "permission_mode": "bypassPermissions",
}
CHILD = {"agent_id": "01a1e29f-83be-7963-addc-154a140c5ccb", "agent_type": "default"}
CHILD_FACTS = {"agent": CHILD["agent_id"]}
PATCH = (
    "*** Begin Patch\n*** Add File: new.py\n+hi\n*** Update File: free.py\n*** Move to: moved.py \n"
    "@@\n-x = 1\n+x = 2\n*** End Patch\n"
)


def tool(name: str, command: Any, event: str = "PreToolUse") -> dict[str, Any]:
    given = {"command": command}
    return {"hook_event_name": event, "tool_name": name, "tool_input": given, "tool_use_id": "call_3"}


STARTED = {"hook_event_name": "SessionStart", "source": "startup"}
EDIT = tool("apply_patch", PATCH)
EDITED = {
    "tool": "edit",
    "tool_name": "apply_patch",
    "call": "call_3",
    "paths": ("/repo/new.py", "/repo/free.py", "/repo/moved.py"),
}
SHELL = {"tool": "shell", "tool_name": "Bash", "call": "call_3"}
STOPPING = {"hook_event_name": "Stop", "last_assistant_message": "done"}
CHILD_STOPS = CHILD | {"hook_event_name": "SubagentStop", "stop_hook_active": False}
IN_SHELL = f"apply_patch <<'EOF'\n{PATCH}EOF"

PAYLOADS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (STARTED, {"kind": "start", "source": "startup"}),
    ({"hook_event_name": "UserPromptSubmit", "prompt": "go"}, {"kind": "prompt"}),
    (CHILD | {"hook_event_name": "UserPromptSubmit"}, {"kind": "prompt", **CHILD_FACTS}),
    (EDIT, {"kind": "before", **EDITED}),
    (CHILD | EDIT, {"kind": "before", **EDITED, **CHILD_FACTS}),
    (EDIT | {"hook_event_name": "PostToolUse", "tool_response": "Success."}, {"kind": "after", **EDITED}),
    (tool("Bash", "ls"), {"kind": "before", **SHELL, "command": "ls"}),
    (tool("Bash", IN_SHELL), {"kind": "before", **SHELL, "command": IN_SHELL}),
    (
        tool("spawn_agent", "x") | {"tool_input": {"message": "fix"}},
        {"kind": "before", "tool_name": "spawn_agent", "call": "call_3"},
    ),
    (
        tool("mcp__probe__claim", "x") | {"tool_input": None},
        {"kind": "before", "tool_name": "mcp__probe__claim", "call": "call_3"},
    ),
    (STOPPING | {"stop_hook_active": False}, {"kind": "stop"}),
    (STOPPING | {"stop_hook_active": True}, {"kind": "stop", "is_again": True}),
    (CHILD | {"hook_event_name": "SubagentStart"}, {"kind": "child-start", **CHILD_FACTS}),
    (CHILD_STOPS, {"kind": "child-stop", **CHILD_FACTS}),
    ({"hook_event_name": "SessionEnd", "reason": "other"}, {"kind": "end", "source": "other"}),
    ({"hook_event_name": "PermissionRequest"}, {"kind": "other"}),
]


@pytest.mark.parametrize(("payload", "facts"), PAYLOADS)
def test_payloads_of_codex_are_read(payload: dict[str, Any], facts: dict[str, Any]) -> None:
    expected = HookEvent(client="codex", session=str(BASE["session_id"]), cwd="/repo", **facts)
    assert codex.read("", BASE | payload, {}) == expected


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        BASE | EDIT | {"session_id": None},
        BASE | EDIT | {"tool_name": ""},
        BASE | EDIT | {"tool_input": PATCH},
        BASE | EDIT | {"tool_input": {"patch": PATCH}},
        BASE | tool("apply_patch", 7),
        BASE | tool("apply_patch", "*** Begin Patch\n*** End Patch\n"),
        BASE | tool("apply_patch", "*** Begin Patch\n*** Add File: a\0b\n+x\n*** End Patch\n"),
        BASE | EDIT | {"cwd": None},
        BASE | tool("Bash", ["ls"]),
    ],
)
def test_unknown_payload_is_refused_and_not_guessed(payload: Any) -> None:
    with pytest.raises(Malformed) as caught:
        codex.read("PreToolUse", payload, {})
    assert caught.value.code == "HOOK_INPUT"


def event_of(payload: dict[str, Any]) -> HookEvent:
    return codex.read("", BASE | payload, {})


def specific(name: str, **facts: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, **facts}}


HELD = {"decision": "block", "reason": "why"}
REFUSED = HELD | specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="why")


@pytest.mark.parametrize(
    ("payload", "answer", "expected"),
    [
        (EDIT, deny("why"), REFUSED),
        (tool("Bash", "ls"), deny("why"), REFUSED),
        (EDIT, inform("why"), specific("PreToolUse", additionalContext="why")),
        (STARTED, inform("why"), specific("SessionStart", additionalContext="why")),
        (tool("Bash", "ls", "PostToolUse"), inform("why"), specific("PostToolUse", additionalContext="why")),
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
    ],
)
def test_answers_have_the_form_that_codex_obeys(
    payload: dict[str, Any], answer: HookAnswer, expected: dict[str, Any]
) -> None:
    output = codex.render(event_of(payload), answer)
    assert (output.exit_code, output.stderr) == (0, "")
    assert json.loads(output.stdout) == expected


@pytest.mark.parametrize("payload", [payload for payload, _ in PAYLOADS])
def test_silent_answer_is_empty(payload: dict[str, Any]) -> None:
    assert codex.render(event_of(payload), NOTHING) == HookOutput()


def test_a_refusal_ends_without_the_full_stop_that_codex_adds() -> None:
    reply = json.loads(codex.render(event_of(EDIT), deny("Held. Do something else.")).stdout)
    assert reply["reason"] == "Held. Do something else"
    assert reply["hookSpecificOutput"]["permissionDecisionReason"] == reply["reason"]
    assert codex.refuse("PreToolUse", "It is broken.").stderr == "It is broken\n"


@pytest.mark.parametrize("reason", ["", "  \n", "the file \udce9 is held"])
def test_a_refusal_never_has_a_reason_that_codex_drops(reason: str) -> None:
    reply = json.loads(codex.render(event_of(EDIT), deny(reason)).stdout)["reason"]
    assert reply.strip()
    assert reply.encode("utf-8")
    assert codex.refuse("PreToolUse", reason).stderr.strip()


def test_a_long_text_is_cut_where_codex_would_cut_it() -> None:
    output = json.loads(codex.render(event_of(STARTED), inform("é" * 20_000)).stdout)
    assert len(output["hookSpecificOutput"]["additionalContext"].encode()) <= 9_900


@pytest.mark.parametrize(("word", "code"), [("", 2), ("PreToolUse", 2), ("Stop", 1), ("SessionStart", 1)])
def test_an_unreadable_call_is_refused_where_something_is_guarded(word: str, code: int) -> None:
    assert codex.refuse(word, "why") == HookOutput(exit_code=code, stderr="why\n")


@pytest.mark.parametrize(
    ("exit_code", "stdout", "is_refused"),
    [
        (2, "", True),
        (0, json.dumps(REFUSED), True),
        (0, json.dumps(REFUSED | {"permissionDecision": "deny"}), False),  # one key too many
        (0, "", False),
        (0, "{nope", False),
        (1, json.dumps(REFUSED), False),
    ],
)
def test_refusals_that_codex_obeys_are_recognized(exit_code: int, stdout: str, is_refused: bool) -> None:
    assert codex.is_denial("PreToolUse", exit_code, stdout) is is_refused


def test_a_guard_is_run_by_a_shell_that_understands_it() -> None:
    (file,) = SETUP.wanted_files(
        lambda word, is_guard: f"hook {word} || exit 2" if is_guard else f"hook {word}"
    )
    hooks = file.content["hooks"]
    assert file.path == ".codex/hooks.json"
    assert set(hooks) == set(codex.kinds)
    command = {"type": "command", "command": "/bin/sh -c 'hook PreToolUse || exit 2'", "timeout": 30}
    assert hooks["PreToolUse"][0] == {"matcher": "apply_patch|Bash", "hooks": [command]}
    assert hooks["SessionEnd"][0]["hooks"][0]["timeout"] == 3


@pytest.mark.parametrize("kind", ["edit", "shell"])
def test_a_canary_is_a_call_that_is_guarded(kind: str) -> None:
    canary = make_canary("codex", kind, "/repo", "/repo/a.py", "s", "")
    event = codex.read(canary.event_name, canary.payload, canary.variables)
    assert (event.tool, event.session, event.agent, is_guarded(event)) == (kind, "s", "", True)
