"""The official inspector drives every tool, and the official conformance suite passes for what we offer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.mcp.tool_schemas import RESOURCES, TOOLS
from tests.mcp.test_tools import landlane
from tests.support.real_clients.client import NODE, clients_folder, program_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.client

FOLDER = clients_folder()  # read now: the sealed home of a test takes the variable away
SECONDS = 240

# Of scenarios that try several things, what needs a fixture of the suite's own, or what we do not offer.
NOT_OURS = {
    "server-stateless": {"ServerRejectsUndeclaredCapability", "MissingCapabilityHttp400"},
    "caching": {"PromptsListCachingHints"},
}
HANDSHAKE = (
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
MODERN = (
    "server-stateless",
    "tools-list",
    "resources-list",
    "sep-2164-resource-not-found",
    "caching",
    "http-header-validation",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
)


def find(name: str) -> str:
    program = program_of(name, FOLDER)
    if program is None:
        pytest.skip(f"no {name}: `scripts/clients.sh --again {name}` installs it")
    return str(program)


def node_environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{FOLDER / NODE}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """Our server over HTTP. The suite sends no token, so each request is given one on its way."""
    find("conformance")
    joined = landlane(folder, "join", "suite")["session"]
    script = Path(__file__).with_name("serve_with_token.py")
    words = [sys.executable, str(script), str(folder), f"{joined['id']}:{joined['secret']}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
        server.terminate()


@pytest.mark.parametrize(
    ("version", "scenario"),
    [*(("2025-11-25", one) for one in HANDSHAKE), *(("2026-07-28", one) for one in MODERN)],
)
def test_the_conformance_suite_passes_for_what_is_offered(
    url: str, tmp_path: Path, version: str, scenario: str
) -> None:
    words = [find("conformance"), "server", "--url", url, "--scenario", scenario, "--spec-version", version]
    done = subprocess.run(
        words, cwd=tmp_path, env=node_environment(), capture_output=True, text=True, timeout=SECONDS
    )
    said = done.stdout + done.stderr
    assert "SKIPPED: scenario" not in said
    assert "Passed: " in said, said
    _, _, failed = said.partition("=== Failed Checks ===")
    names = {line[4:].partition(":")[0] for line in failed.splitlines() if line.startswith("  - ")}
    assert names <= NOT_OURS.get(scenario, set()), said
    assert not (done.returncode and not names), said


def inspect(folder: Path, *words: str) -> dict[str, Any]:
    command = [find("inspector"), "--cli", sys.executable, "-m", "landlane", "mcp", "--as", "ann"]
    done = subprocess.run(
        [*command, *words],
        cwd=folder,
        env=node_environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return json.loads(done.stdout)


# What each tool answers in a repository with one task that ann has; `ok` where it can be.
CALLS: dict[str, tuple[list[str], str]] = {
    "status": ([], ""),
    "claim": (['paths=["calc.py"]'], ""),
    "next": ([], ""),
    "done": (["task=T1"], "EVIDENCE_MISSING"),
    "state": (["do=set", "key=plan", "value=1"], ""),
    "journal": (["last=5"], ""),
    "land": (["branch=nowhere"], "UNKNOWN_BRANCH"),
    "handoff": (["task=T1", "context=half of it is there"], ""),
    "ask": (["task=T1", "question=which half?"], ""),  # about a task that has no owner, too
    "release": ([], ""),
}


@pytest.mark.timeout(600)  # the inspector starts eleven times, which takes minutes on a busy machine
def test_the_inspector_drives_every_tool(folder: Path) -> None:
    find("inspector")
    landlane(folder, "task", "add", "Half of it", "--as", "lead")
    listed = inspect(folder, "--method", "tools/list")
    assert [tool["name"] for tool in listed["tools"]] == [tool["name"] for tool in TOOLS]
    assert set(CALLS) == {tool["name"] for tool in TOOLS}
    order = ["status", "claim", "next", "done", "state", "journal", "land", "handoff", "ask", "release"]
    for name in order:
        given, code = CALLS[name]
        arguments = [word for one in given for word in ("--tool-arg", one)]
        answer = inspect(folder, "--method", "tools/call", "--tool-name", name, *arguments)
        found = answer["structuredContent"]
        assert found.get("code", "") == code, (name, found)
        assert found["ok"] is not bool(code)
    read = inspect(folder, "--method", "resources/list")
    assert [one["uri"] for one in read["resources"]] == [one["uri"] for one in RESOURCES]
