"""Every client with a tool that reads tells our hook before it does: else nobody knows what it has seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from landlane.clients.registry import setup_of

pytestmark = pytest.mark.unit


def command(word: str, is_guard: bool) -> str:
    return f"landlane/hook_entry/client_hook.py {word}" + (" || exit 2" if is_guard else "")


def hooks_before(client: str) -> list[dict[str, Any]]:
    """What is called before a tool: matcher and command."""
    (file,) = setup_of(client).wanted_files(command)
    content = json.loads(file.content) if isinstance(file.content, str) else file.content
    events = {"claude": "PreToolUse", "gemini": "BeforeTool", "qwen": "PreToolUse", "copilot": "preToolUse"}
    groups = content["hooks"][events[client]]
    return [
        {"matcher": group["matcher"], "command": group.get("bash") or group["hooks"][0]["command"]}
        for group in groups
    ]


@pytest.mark.parametrize(
    ("client", "tool"),
    [("claude", "Read"), ("gemini", "read_file"), ("qwen", "read_file"), ("copilot", "view")],
)
def test_reading_is_noted_and_never_refused_when_the_hook_is_gone(client: str, tool: str) -> None:
    fitting = [one for one in hooks_before(client) if tool in one["matcher"].split("|")]

    assert len(fitting) == 1
    assert "exit 2" not in fitting[0]["command"]
