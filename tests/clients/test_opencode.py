"""opencode: what our plugin sent from real sessions, and the answers that it obeyed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from landlane.clients.registry import hooks_of
from landlane.errors import Malformed
from landlane.protocol import hook_events as words

pytestmark = pytest.mark.unit

opencode = hooks_of("opencode")

HEAD: dict[str, Any] = {"session_id": "ses_e1d5f250bffeZp1PnpSLejfVZg", "cwd": "/repo"}
CHILD = {"agent_id": "ses_e1d5f0c70ffei0m7pO5hEF9FV7"}
EDIT: dict[str, Any] = {
    "tool_name": "edit",
    "tool_input": {"filePath": "/repo/calc.py", "oldString": "a - b", "newString": "a + b"},
    "tool_use_id": "call_4",
}
PATCH = "*** Begin Patch\n*** Delete File: old.py\n*** End Patch"


def read(name: str, **more: Any) -> words.HookEvent:
    return opencode.read("", {**HEAD, "hook_event_name": name, **more}, {})


@pytest.mark.parametrize(
    ("name", "given", "tool", "paths"),
    [
        ("edit", EDIT["tool_input"], words.ToolAction.EDIT, ("/repo/calc.py",)),
        ("write", {"filePath": "new.py", "content": "1\n"}, words.ToolAction.EDIT, ("/repo/new.py",)),
        ("apply_patch", {"patchText": PATCH}, words.ToolAction.EDIT, ("/repo/old.py",)),
        ("read", {"filePath": "/repo/calc.py"}, words.ToolAction.READ, ("/repo/calc.py",)),
        ("bash", {"command": "echo hi", "description": "x"}, words.ToolAction.SHELL, ()),
        ("task", {"description": "sub", "prompt": "fix"}, words.ToolAction.OTHER, ()),
    ],
)
def test_tools_are_recognized(name: str, given: object, tool: str, paths: tuple[str, ...]) -> None:
    event = read("tool.execute.before", tool_name=name, tool_input=given, tool_use_id="call_4")
    assert (event.kind, event.tool, event.paths, event.call) == (
        words.HookEventKind.BEFORE,
        tool,
        paths,
        "call_4",
    )


def test_shell_runs_in_the_folder_it_names() -> None:
    given = {"command": "make", "workdir": "sub"}
    event = read("tool.execute.after", tool_name="bash", tool_input=given)
    assert (event.kind, event.command, event.cwd) == (words.HookEventKind.AFTER, "make", "/repo/sub")


@pytest.mark.parametrize(
    ("name", "kind", "kind_of_child"),
    [
        ("session.created", words.HookEventKind.START, words.HookEventKind.CHILD_START),
        ("chat.message", words.HookEventKind.PROMPT, words.HookEventKind.PROMPT),
        ("session.idle", words.HookEventKind.STOP, words.HookEventKind.CHILD_STOP),
        ("session.deleted", words.HookEventKind.END, words.HookEventKind.CHILD_STOP),
        ("session.updated", words.HookEventKind.OTHER, words.HookEventKind.OTHER),
    ],
)
def test_a_session_below_another_is_its_subagent(name: str, kind: str, kind_of_child: str) -> None:
    assert read(name).kind == kind
    child = read(name, **CHILD)
    assert (child.kind, child.session, child.agent) == (kind_of_child, HEAD["session_id"], CHILD["agent_id"])


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {**HEAD, "session_id": 1, **EDIT},
        {**HEAD, "tool_input": {}},
        {**HEAD, "tool_name": "edit", "tool_input": {"filePath": None}},
        {**HEAD, "tool_name": "edit", "tool_input": [1]},
        {**HEAD, "tool_name": "apply_patch", "tool_input": {"patchText": "nothing"}},
        {"session_id": "ses", "tool_name": "write", "tool_input": {"filePath": "relative"}},
    ],
)
def test_unknown_payloads_are_refused_and_not_guessed(payload: Any) -> None:
    with pytest.raises(Malformed) as caught:
        opencode.read("tool.execute.before", payload, {})
    assert caught.value.code == "HOOK_INPUT"


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("tool.execute.before", words.NOTHING, None),
        ("tool.execute.before", words.deny("held by bob"), {"deny": "held by bob"}),
        ("tool.execute.before", words.inform("news"), {"tell": "news"}),
        ("tool.execute.after", words.inform("news"), {"tell": "news"}),
        ("session.idle", words.HookAnswer(verdict=words.HookVerdict.HOLD, text="left"), {"tell": "left"}),
    ],
)
def test_answers_are_exactly_what_the_plugin_reads(
    name: str, answer: words.HookAnswer, expected: object
) -> None:
    output = opencode.render(read(name, **EDIT), answer)
    assert (output.exit_code, output.stderr) == (0, "")
    assert (json.loads(output.stdout) if output.stdout else None) == expected


@pytest.mark.parametrize(
    ("exit_code", "stdout", "is_denied"),
    [
        (0, "", False),
        (0, '{"tell": "x"}', False),
        (0, '{"deny": "x"}', True),
        (0, "hello", True),
        (0, "[]", True),
        (1, "", True),
    ],
)
def test_everything_but_a_readable_yes_denies(exit_code: int, stdout: str, is_denied: bool) -> None:
    assert opencode.is_denial("", exit_code, stdout) is is_denied
    assert opencode.is_denial("", opencode.refuse("", "broken").exit_code, "")
