"""Hostile calls: whatever is said, the answer is clear, nothing is changed, and the server lives on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from landlane.mcp.arguments import read_arguments
from landlane.mcp.tool_schemas import BY_NAME, TOOLS
from tests.mcp.speaking import McpClient
from tests.mcp.test_tools import landlane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAMES = [str(tool["name"]) for tool in TOOLS]
CHANGING = [name for name in NAMES if not BY_NAME[name]["annotations"]["readOnlyHint"]]

BAD_CALLS: list[tuple[str, Any, str]] = [
    ("nope", {}, "UNKNOWN_TOOL"),
    ("../claim", {}, "UNKNOWN_TOOL"),
    ("", {}, "UNKNOWN_TOOL"),
    ("claim", {}, "BAD_ARGUMENTS"),
    ("claim", {"paths": "calc.py"}, "BAD_ARGUMENTS"),
    ("claim", {"paths": []}, "BAD_ARGUMENTS"),
    ("claim", {"paths": [7]}, "BAD_ARGUMENTS"),
    ("claim", {"paths": [None]}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["a"], "wait": "long"}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["a"], "wait": -1}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["a"], "wait": True}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["a"], "wait": 10**400}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["a"], "shared": 1}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["a"], "as": "ann"}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["a"], "session": "s-1:2"}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["a"] * 5_000}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["x" * 200_000]}, "BAD_ARGUMENTS"),
    ("claim", {"paths": ["x" * 50_000]}, "PATTERN_TOO_LONG"),
    ("claim", {"paths": ["a\0b"]}, "BAD_ARGUMENTS"),
    ("claim", {"paths": [""]}, ""),
    ("claim", {"paths": ["../outside"]}, "PATH_OUTSIDE"),
    ("claim", {"paths": ["/etc/passwd"]}, "PATH_OUTSIDE"),
    ("claim", {"paths": ["calc.py", "a/../../.."]}, "PATH_OUTSIDE"),
    ("claim", {"paths": [".git/config"]}, ""),
    ("claim", {"paths": ["a"], "task": "x/../y"}, ""),
    ("release", {"paths": ["never-claimed"]}, ""),
    ("release", {"commit": "--help"}, ""),
    ("done", {"task": "T999"}, ""),
    ("done", {"task": {"id": 1}}, "BAD_ARGUMENTS"),
    ("handoff", {"task": "T999", "context": "x"}, ""),
    ("handoff", {"task": "T999"}, "BAD_ARGUMENTS"),
    ("ask", {"task": "T999", "question": "x"}, ""),
    ("ask", {"task": "T1' OR 1=1 --", "question": "x"}, ""),
    ("land", {"branch": "--upload-pack=touch /tmp/x"}, ""),
    ("land", {"branch": "main"}, ""),
    ("land", {"branch": "../../etc"}, ""),
    ("state", {"do": "drop"}, "BAD_ARGUMENTS"),
    ("state", {"do": "set", "key": "", "value": 1}, "BAD_ARGUMENTS"),
    ("state", {"do": "set", "key": "k" * 90_000, "value": 1}, ""),
    ("state", {"do": "get", "key": "k\nk"}, ""),
    ("journal", {"last": -3}, "BAD_ARGUMENTS"),
    ("journal", {"since": "now"}, "BAD_ARGUMENTS"),
    ("journal", {"since": 2**80}, "BAD_ARGUMENTS"),
]


@pytest.fixture(scope="module")
def mallory(folder: Path) -> Iterator[McpClient]:
    with McpClient(folder, "--as", "mallory") as speaker:
        assert speaker.call("claim", paths=["own.py"])["ok"]
        yield speaker


def state_of(folder: Path) -> Any:
    """All that a call could change: claims, tasks, state and landings."""
    words = (["claims"], ["task", "list"], ["state", "list"], ["queue", "list"])
    found = [landlane(folder, *one) for one in words]
    return json.dumps([{key: one[key] for key in one if key != "ok"} for one in found]).replace("until", "")


@pytest.mark.parametrize(("name", "arguments", "code"), BAD_CALLS)
def test_a_bad_call_is_a_clear_tool_error(mallory: McpClient, name: str, arguments: Any, code: str) -> None:
    found = mallory.answer_to(mallory.ask("tools/call", {"name": name, "arguments": arguments}))
    assert not found["ok"], found
    assert found["code"] not in ("UNEXPECTED", "SYSTEM_REFUSED"), found
    assert code in ("", found["code"]), found
    assert found["message"]
    assert found["hint"]
    assert len(json.dumps(found)) < 4_000


def test_lone_surrogates_are_refused_at_once(mallory: McpClient) -> None:
    answer = mallory.ask("tools/call", {"name": "claim", "arguments": {"paths": ["\ud800"]}})
    assert "Unicode" in answer["error"]["message"]
    whole = {"name": "claim", "arguments": {"paths": ["../\U0001f600"]}}
    assert mallory.answer_to(mallory.ask("tools/call", whole))["code"] == "PATH_OUTSIDE"


@pytest.mark.promise(
    "mcp.bad-calls-change-nothing",
    "A call with wrong, huge or escaping arguments returns a clear tool error and changes nothing.",
)
def test_bad_calls_have_changed_nothing(mallory: McpClient, folder: Path) -> None:
    for name, arguments, _ in BAD_CALLS:
        mallory.ask("tools/call", {"name": name, "arguments": arguments})
    assert [one["pattern"] for one in landlane(folder, "claims")["claims"]] == ["own.py"]
    for words, key in (
        (("task", "list"), "tasks"),
        (("state", "list"), "states"),
        (("queue", "list"), "landings"),
    ):
        assert landlane(folder, *words)[key] == []


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no JSON at all",
        "[]",
        "[1, 2]",
        "{}",
        "7",
        '"x"',
        "null",
        '{"jsonrpc": "2.0"}',
        '{"jsonrpc": "2.0", "id": 1}',
        '{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": 5000, "method": 7}',
        '{"jsonrpc": "2.0", "id": 5001, "method": "tools/call"}',
        '{"jsonrpc": "2.0", "id": 5002, "method": "tools/call", "params": {"name": 1}}',
        '{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "claim", "arguments": []}}',
        '{"jsonrpc": "2.0", "id": 5004, "method": "no/such"}',
        '{"jsonrpc": "2.0", "id": 5005, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}}',
        '{"jsonrpc": "2.0", "id": 5006, "method": "resources/subscribe", "params": {"uri": "landlane://x"}}',
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}}',
        '{"jsonrpc": "2.0", "id": 12345, "result": {}}',
        "[" * 100_000,
        '{"a":' * 50_000,
        "x" * 5_000_000,
        "\ud800",
    ],
)
def test_the_server_survives_any_message(mallory: McpClient, line: str) -> None:
    mallory.say(line)
    assert mallory.call("status")["you"]["agent"] == "mallory"


def test_the_first_line_may_be_anything(folder: Path) -> None:
    speaker = McpClient(folder, "--as", "eve")
    for line in ("x", "[" * 10_000, '{"jsonrpc": "2.0", "id": 77, "method": "tools/list"}'):
        speaker.say(line)
    speaker.open()
    assert speaker.call("status")["ok"]
    speaker.close()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A call of a tool with arguments that may or may not be what it takes."""
    name = draw(st.sampled_from(NAMES))
    known = BY_NAME[name]["inputSchema"]["properties"]
    given: dict[str, Any] = {}
    for key, schema in known.items():
        if key == "wait" or not draw(st.booleans()):
            continue
        fitting: Any = JSON
        if schema.get("type") == "string":
            fitting = st.text(max_size=30) | st.sampled_from(
                ["T1", "main", "HEAD", "..", "/", "calc.py", "-x"]
            )
        elif schema.get("type") == "array":
            fitting = st.lists(
                st.text(max_size=20) | st.sampled_from(["a/**", "../x", "deploy:prod"]), max_size=4
            )
        elif schema.get("type") == "integer":
            fitting = st.integers(min_value=0, max_value=2**60)
        elif "enum" in schema:
            fitting = st.sampled_from(schema["enum"])
        given[key] = draw(st.one_of(fitting, fitting, JSON))
    if draw(st.integers(0, 9)) == 0:
        given[draw(st.text(max_size=10))] = draw(JSON)
    return name, given


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(call=calls())
def test_any_call_gets_an_answer_that_fits_its_schema(
    mallory: McpClient, call: tuple[str, dict[str, Any]]
) -> None:
    from jsonschema import validate

    name, arguments = call
    result = mallory.ask("tools/call", {"name": name, "arguments": arguments})["result"]
    found = result["structuredContent"]
    validate(found, BY_NAME[name]["outputSchema"])
    assert result.get("isError", False) is not found["ok"]
    if not found["ok"]:
        assert found["code"] not in ("UNEXPECTED", "SYSTEM_REFUSED"), (call, found)
        assert found["hint"]


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(NAMES), arguments=st.dictionaries(st.text(max_size=10), JSON, max_size=4))
def test_arguments_are_read_or_refused_and_nothing_else(name: str, arguments: dict[str, Any]) -> None:
    from landlane.errors import Malformed

    try:
        read = read_arguments(name, arguments)
    except Malformed:
        return
    assert set(read) <= set(BY_NAME[name]["inputSchema"]["properties"])
