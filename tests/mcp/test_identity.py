"""Who a call belongs to: arguments, environment, the client that started the server, or a subagent of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import landlane
from landlane.app.open import open_repository
from landlane.sessions.join import join
from landlane.sessions.tool_calls import announce_call, list_announced_calls
from tests.mcp.speaking import McpClient
from tests.mcp.test_tools import landlane as run

pytestmark = [pytest.mark.integration, pytest.mark.slow]

LEAN = str(Path(landlane.__file__).parent / "hook_entry" / "client_hook.py")


def tell_hook(folder: Path, event: str, session: str, agent: str = "", **more: Any) -> None:
    """Call the hook as Claude Code does, with this very process as the client's."""
    payload = {"session_id": session, "cwd": str(folder), "hook_event_name": event, "agent_id": agent, **more}
    environment = {**os.environ, "CLAUDE_PID": str(os.getpid()), "CLAUDE_PROJECT_DIR": str(folder)}
    subprocess.run(
        [sys.executable, "-I", "-S", LEAN, "claude", event],
        input=json.dumps(payload),
        text=True,
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )


def announce(folder: Path, session: str, call: str, agent: str = "", tool: str = "claim") -> None:
    more = {"tool_name": f"mcp__landlane__{tool}", "tool_input": {}, "tool_use_id": call}
    tell_hook(folder, "PreToolUse", session, agent, **more)


def claim_as(speaker: McpClient, path: str, **meta: Any) -> str:
    call = {"name": "claim", "arguments": {"paths": [path]}}
    found = speaker.answer_to(speaker.ask("tools/call", call, **meta))
    return found["granted"][0]["holder"] if found["ok"] else found["code"]


def test_arguments_and_environment_identify_the_caller(repository: Path) -> None:
    joined = run(repository, "join", "cid")["session"]
    shown = f"{joined['id']}:{joined['secret']}"
    with McpClient(repository, "--as", "ann") as speaker:
        assert claim_as(speaker, "a") == "ann"
    with McpClient(repository, environment={"LANDLANE_AGENT": "bob"}) as speaker:
        assert claim_as(speaker, "b") == "bob"
    with McpClient(repository, "--session", shown) as speaker:
        assert claim_as(speaker, "c") == "cid"
    with McpClient(repository, environment={"LANDLANE_SESSION": shown}) as speaker:
        assert claim_as(speaker, "d") == "cid"


def test_another_sessions_secret_cannot_be_guessed(repository: Path) -> None:
    joined = run(repository, "join", "cid")["session"]
    with McpClient(repository, "--session", f"{joined['id']}:guessed") as speaker:
        assert claim_as(speaker, "a") == "NOT_YOUR_SESSION"
    assert run(repository, "claims")["claims"] == []


def test_an_unknown_client_gets_a_session_that_ends_with_its_process(repository: Path) -> None:
    with McpClient(repository) as speaker:
        holder = claim_as(speaker, "a")
        assert holder == f"speaker-{speaker.process.pid}"
        assert claim_as(speaker, "b") == holder
    assert run(repository, "claims")["claims"] == []


def test_the_client_that_started_the_server_acts(repository: Path) -> None:
    tell_hook(repository, "SessionStart", "main-1", source="startup")
    with McpClient(repository) as speaker:
        assert claim_as(speaker, "a") == "claude-main1"


@pytest.mark.promise(
    "mcp.subagents-act-as-themselves",
    "A claim that a subagent makes through the MCP server belongs to the subagent, where its client "
    "identifies it.",
)
@pytest.mark.parametrize("key", ["claudecode/toolUseId", "callId"])
def test_the_call_id_that_the_hook_reported_names_the_subagent(repository: Path, key: str) -> None:
    tell_hook(repository, "SessionStart", "main-1", source="startup")
    announce(repository, "main-1", "call_1", agent="sub-7")
    announce(repository, "main-1", "call_2")
    repo = open_repository(str(repository))  # another client, whose calls are numbered alike
    announce_call(repo, join(repo, "other").session.id, "call_1", "mcp__landlane__claim")
    repo.close()
    with McpClient(repository) as speaker:
        assert claim_as(speaker, "a", **{key: "call_1"}) == "claude-main1.sub7"
        assert claim_as(speaker, "b", **{key: "call_2"}) == "claude-main1"
        assert claim_as(speaker, "c", **{key: "call_unheard_of"}) == "claude-main1"
        # What its parent holds is not in a subagent's way.
        announce(repository, "main-1", "call_3", agent="sub-7")
        assert claim_as(speaker, "b", **{key: "call_3"}) == "claude-main1.sub7"


def test_without_an_id_a_single_announced_call_identifies_the_caller(repository: Path) -> None:
    tell_hook(repository, "SessionStart", "main-1", source="startup")
    with McpClient(repository) as speaker:
        announce(repository, "main-1", "x1", agent="sub-7")
        assert claim_as(speaker, "a") == "claude-main1.sub7"
        announce(repository, "main-1", "x2", agent="sub-7")
        announce(repository, "main-1", "x3", agent="sub-8")
        assert claim_as(speaker, "b") == "claude-main1"


def test_tools_of_other_servers_are_not_recorded(repository: Path) -> None:
    tell_hook(
        repository, "PreToolUse", "main-1", tool_name="mcp__browser__open", tool_input={}, tool_use_id="1"
    )
    repo = open_repository(str(repository))
    assert list_announced_calls(repo) == []
    repo.close()
