"""Every tool, as a client calls it, in both eras of the protocol."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from landlane.app.open import open_repository
from landlane.gates.decide import answer_gate
from landlane.mcp.tool_schemas import INSTRUCTIONS, TOOLS
from landlane.sessions.join import join
from landlane.sessions.model import SessionKind
from tests.mcp.speaking import MODERN, McpClient
from tests.support.git import git

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ERAS = pytest.mark.parametrize("version", ["2025-06-18", MODERN])


def landlane(folder: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "landlane", *words, "--json"], cwd=folder, capture_output=True, text=True
    )
    return json.loads(done.stdout)


@ERAS
def test_a_task_goes_from_next_to_landed(repository: Path, version: str) -> None:
    (repository / "landlane.toml").write_text("[landing]\nchecks = []\n", encoding="utf-8")
    git(repository, "add", "landlane.toml")
    git(repository, "commit", "-qm", "settings")
    made = landlane(
        repository, "task", "add", "Say y", "--path", "free.py", "--check", "true", "--as", "lead"
    )
    with McpClient(repository, "--as", "ann", version=version) as ann:
        taken = ann.call("next")
        assert taken["task"]["id"] == made["task"]["id"]
        assert [claim["pattern"] for claim in taken["claims"]] == ["free.py"]
        assert ann.call("next")["resumed"]

        git(repository, "checkout", "-q", "-b", taken["task"]["branch"])
        (repository / "free.py").write_text("y = 2\n", encoding="utf-8")
        git(repository, "commit", "-qam", "Say y")
        done = ann.call("done", task=taken["task"]["id"], result="y is said")
        assert done["task"]["state"] == "landing", done
        assert all(proof["seen"] for proof in done["evidence"])

        git(repository, "checkout", "-q", "--detach")
        landed = ann.call("land", task=taken["task"]["id"], wait=50)
        assert "landing" in landed, landed
        while landed["landing"]["state"] in ("queued", "testing"):
            assert "call land again" in landed["hint"]
            landed = ann.call("land", task=taken["task"]["id"], wait=50)
        assert landed["landing"]["state"] == "landed", landed
    git(repository, "merge-base", "--is-ancestor", taken["task"]["branch"], "main")


@ERAS
def test_a_second_client_is_refused_with_the_holder(repository: Path, version: str) -> None:
    with (
        McpClient(repository, "--as", "ann", version=version) as ann,
        McpClient(repository, "--as", "bob") as bob,
    ):
        assert ann.call("claim", paths=["calc.py"], note="new sums")["granted"]
        refused = bob.call("claim", paths=["calc.py", "free.py"])
        assert refused["code"] == "CLAIM_HELD"
        assert refused["granted"] == []
        (one,) = refused["refused"]
        assert (one["holder"], one["note"]) == ("ann", "new sums")
        assert one["hint"]
        assert bob.call("status")["claims"][0]["holder"] == "ann"

        assert ann.call("release", paths=["calc.py"])["released"] == ["calc.py"]
        assert bob.call("claim", paths=["calc.py"])["ok"]
        assert bob.call("release")["released"] == ["calc.py"]


def test_a_returned_task_carries_its_feedback_to_the_next_agent(repository: Path) -> None:
    landlane(repository, "task", "add", "Say y", "--path", "free.py", "--as", "lead")
    with McpClient(repository, "--as", "ann") as ann, McpClient(repository, "--as", "bob") as bob:
        task = ann.call("next")["task"]["id"]
        handed = ann.call("handoff", task=task, context="the parser vanished long ago", next="write it anew")
        assert handed["task"]["state"] == "ready"
        assert ann.call("status")["claims"] == []
        taken = bob.call("next")
        assert taken["task"]["id"] == task
        assert [one["why"] for one in taken["feedback"]] == [
            "the parser vanished long ago\nnext: write it anew"
        ]
        assert taken["task"]["failures"] == 0
        assert ann.call("handoff", task=task, context="mine")["code"] == "TASK_NOT_YOURS"
    before = landlane(repository, "task", "show", task)["task"]
    landlane(repository, "store", "rebuild")
    after = landlane(repository, "task", "show", task)["task"]
    assert (after["lapses"], after["failures"]) == (before["lapses"], before["failures"]) == (0, 0)


def test_a_handoff_for_one_agent_is_found_by_its_next(repository: Path) -> None:
    landlane(repository, "task", "add", "Say y", "--path", "free.py", "--as", "lead")
    with (
        McpClient(repository, "--as", "ann") as ann,
        McpClient(repository, "--as", "bob") as bob,
        McpClient(repository, "--as", "eve") as eve,
    ):
        task = ann.call("next")["task"]["id"]
        said = {"context": "the parser vanished", "next": "write it anew", "constraints": ["keep the API"]}
        assert ann.call("handoff", task=task, **said, fields=["x"])["code"] == "HANDOFF_WRONG_TYPE"
        assert ann.call("handoff", task=task, **said, to="no body")["code"] == "BAD_NAME"
        handed = ann.call("handoff", task=task, **said, to="bob")["handoff"]
        assert (handed["id"], handed["to"]) == ("H1", "bob")
        assert handed["taken"]["claims"] == [{"pattern": "free.py", "mode": "exclusive"}]
        assert eve.call("next")["code"] == "NO_TASK"
        bob.call("claim", paths=["other.py"])
        assert bob.call("status")["needs_you"][-1].startswith("ann hands T1 to you (H1, hash ")
        taken = bob.call("next")
        assert taken["task"]["owner"] == "bob"
        assert "- keep the API" in taken["context"]
        assert bob.call("next")["context"] == taken["context"]  # resumed


def test_a_question_for_a_person_pauses_the_task(repository: Path) -> None:
    landlane(repository, "task", "add", "Say y", "--path", "free.py", "--as", "lead")
    with McpClient(repository, "--as", "ann") as ann:
        task = ann.call("next")["task"]["id"]
        asked = ann.call("ask", task=task, question="red or blue?", kind="taste")
        assert (asked["gate"]["state"], asked["gate"]["kind"]) == ("waiting", "taste")
        assert (asked["task"]["state"], asked["task"]["owner"]) == ("waiting_for_person", "ann")
        assert ann.call("next")["code"] == "NO_TASK"
        assert ann.call("ask", task=task, question="red or blue?", kind="taste")["gate"]["id"] == "G1"
        repo = open_repository(str(repository))
        person = join(repo, "pat", kind=SessionKind.PERSON).session
        answer_gate(repo, person, "G1", approve=True, why="blue")
        repo.close()
        shown = ann.call("ask", task=task, question="red or blue?", kind="taste")
        assert (shown["gate"]["state"], shown["gate"]["answer"]) == ("approved", "blue")
        assert shown["task"]["state"] == "active"


def test_state_is_set_by_version_and_appended_to(repository: Path) -> None:
    with McpClient(repository, "--as", "ann") as ann:
        assert ann.call("state", do="get", key="plan")["code"] == "NO_STATE"
        first = ann.call("state", do="set", key="plan", value={"steps": [1]})
        assert (first["version"], first["value"]) == (1, {"steps": [1]})
        stale = ann.call("state", do="set", key="plan", value=2)
        assert stale["code"] == "STATE_STALE"
        assert ann.call("state", do="set", key="plan", value=2, expect=1)["version"] == 2
        ann.call("state", do="append", key="log", value="a")
        assert ann.call("state", do="append", key="log", value="b")["value"] == ["a", "b"]
        assert [one["key"] for one in ann.call("state", do="list", key="l")["states"]] == ["log"]
        assert ann.call("state", do="set")["code"] == "BAD_ARGUMENTS"


def test_the_journal_shows_the_newest_or_what_is_behind_a_position(repository: Path) -> None:
    with McpClient(repository, "--as", "ann") as ann:
        ann.call("claim", paths=["calc.py"])
        (newest,) = ann.call("journal", last=1)["entries"]
        assert (newest["kind"], newest["agent"]) == ("claim.taken", "ann")
        assert ann.call("journal", since=newest["position"])["entries"] == []
        ann.call("release")
        (entry,) = ann.call("journal", since=newest["position"])["entries"]
        assert entry["kind"] == "claim.released"


@pytest.mark.promise(
    "mcp.few-tools",
    "There are at most ten tools, under 2,500 tokens in total, and read-only tools are marked as such.",
)
def test_the_tools_are_few_and_reading_tools_are_marked(repository: Path) -> None:
    with McpClient(repository, "--as", "ann") as ann:
        tools = ann.ask("tools/list")["result"]["tools"]
    names = [tool["name"] for tool in tools]
    assert names == [tool["name"] for tool in TOOLS]
    assert len(names) <= 10
    snapshot = {tool["name"] for tool in tools if tool["annotations"]["readOnlyHint"]}
    assert snapshot == {"status", "journal"}
    assert all(tool["outputSchema"]["required"] == ["ok"] for tool in tools)
    # About four characters make a token; what a client adds around them is its own.
    assert (len(json.dumps(tools)) + len(INSTRUCTIONS)) / 3.5 < 2_500


def test_reading_commands_change_nothing(repository: Path) -> None:
    with McpClient(repository) as speaker:
        for name in ("status", "journal"):
            assert speaker.call(name)["ok"]
        entries = landlane(repository, "log")["entries"]
    assert [entry["kind"] for entry in entries] == ["repository.begun"]


def test_nothing_is_offered_that_only_a_person_may_do() -> None:
    words = json.dumps([(tool["name"], tool["inputSchema"]) for tool in TOOLS])
    assert not any(word in words for word in ("approve", "reject", "force", "init", "undo", "role set"))


def test_without_the_extra_the_command_says_how_to_get_it(repository: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]; "
        f"sys.path.insert(0, {str(__import__('landlane').__path__[0])!r} + '/..'); "
        "from landlane.cli.main import main; sys.exit(main(['mcp', '--json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["code"]) == (1, "NO_MCP")
    assert re.search(r"pip install '.+\[mcp\]'$", answer["hint"]), answer
