"""The first answers come before the SDK is there, and are the SDK's own, word for word."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from landlane import __version__
from landlane.clients.setup_files import sdk_release
from landlane.mcp.answer_while_loading import EarlyAnswers
from landlane.mcp.tool_schemas import INSTRUCTIONS
from tests.mcp.speaking import CLIENT, ENVELOPE, MODERN, VERSIONS, McpClient

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

LISTS = ("tools/list", "resources/list", "resources/templates/list")


def marks(repository: Path) -> list[Path]:
    return list((repository / ".git" / "landlane").glob("mcp-front-off*"))


def said_first(version: str) -> tuple[str, dict[str, Any]]:
    """What a client of this version says first."""
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return ("server/discover", {"_meta": ENVELOPE}) if version == MODERN else ("initialize", hello)


@pytest.mark.promise(
    "mcp.first-answers-are-the-sdks",
    "The answers of the MCP server before the SDK is loaded are exactly those of the SDK.",
)
@pytest.mark.parametrize("version", VERSIONS)
def test_early_answers_equal_those_of_the_sdk(repository: Path, version: str) -> None:
    # With a mark the SDK answers alone.
    mark = repository / ".git" / "landlane" / f"mcp-front-off-{__version__}-{sdk_release()}"
    mark.parent.mkdir()
    mark.touch()
    sdk = McpClient(repository, "--as", "ann", version=version, is_started=True)
    answers = [sdk.open(), *(sdk.ask(method)["result"] for method in LISTS)]
    sdk.close()

    front = EarlyAnswers()
    asked = [
        said_first(version),
        *((method, {"_meta": ENVELOPE} if version == MODERN else {}) for method in LISTS),
    ]
    messages = [{"jsonrpc": "2.0", "id": 1, "method": method, "params": params} for method, params in asked]
    assert [front.answer(message) for message in messages] == answers
    assert answers[0]["instructions"] == INSTRUCTIONS


@pytest.mark.parametrize("version", ["2025-06-18", MODERN])
def test_each_request_is_answered_once_and_the_sdk_agrees(repository: Path, version: str) -> None:
    with McpClient(repository, "--as", "ann", version=version, is_started=True) as speaker:
        for method in LISTS:
            assert speaker.ask(method)["result"]
        speaker.call("status")  # by now the SDK has answered all of it again
        assert speaker.notes == []
    assert marks(repository) == []


def test_an_answer_that_differs_from_the_sdks_ends_early_answers(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from landlane.mcp import answer_while_loading as front, tool_schemas as tool_list\n"
        "front.INSTRUCTIONS = 'as another release would say it'\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with McpClient(repository, "--as", "ann", is_started=True) as speaker:
        speaker.call("status")

    (mark,) = marks(repository)
    assert json.loads(mark.read_text())["method"] == "initialize"
    speaker = McpClient(repository, "--as", "ann", is_started=True)
    assert speaker.open()["instructions"] == INSTRUCTIONS
    speaker.close()


@pytest.mark.parametrize(
    "message",
    [
        [],
        "text",
        {"jsonrpc": "2.0", "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "server/discover",
            "params": {"_meta": {**ENVELOPE, "x": 1}, "y": 1},
        },
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "1999-01-01"}},
        {"jsonrpc": "1.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
    ],
)
def test_unusual_requests_are_left_to_the_sdk(message: Any) -> None:
    assert EarlyAnswers().answer(message) is None


def test_one_connection_uses_one_protocol_version() -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
    modern = {"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {"_meta": ENVELOPE}}
    front = EarlyAnswers()
    assert front.answer({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    assert front.answer(modern) is None
    front = EarlyAnswers()
    assert front.answer(modern)
    assert front.answer({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) is None
