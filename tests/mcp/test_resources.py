"""Rules, tasks, claims and journal as resources, and being told when they read differently."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from landlane.api import Landlane
from landlane.mcp.open_repositories import RepositoryPool
from landlane.mcp.subscriptions import Watch
from tests.mcp.speaking import MODERN, McpClient
from tests.mcp.test_tools import landlane
from tests.support.git import commit_text

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def read(speaker: McpClient, name: str) -> str:
    (content,) = speaker.ask("resources/read", {"uri": f"landlane://{name}"})["result"]["contents"]
    return content["text"]


def hear_updates(speaker: McpClient, wanted: set[str]) -> list[dict[str, Any]]:
    """Read notifications until all of these resources were told of."""
    found: list[dict[str, Any]] = []
    while wanted - {str(one["params"].get("uri")) for one in found}:
        found.append(speaker.hear_next())
    return found


def test_each_resource_can_be_read(repository: Path) -> None:
    commit_text(repository, "RULES.md", "# Rules\n\n1. Be kind.\n")
    landlane(repository, "task", "add", "Say y", "--as", "lead")
    with McpClient(repository, "--as", "ann") as ann:
        ann.call("claim", paths=["calc.py"])
        assert "Be kind" in read(ann, "rules")
        assert [task["title"] for task in json.loads(read(ann, "tasks"))["tasks"]] == ["Say y"]
        assert [one["holder"] for one in json.loads(read(ann, "claims"))["claims"]] == ["ann"]
        assert json.loads(read(ann, "journal"))["entries"][-1]["kind"] == "claim.taken"
        refused = ann.ask("resources/read", {"uri": "landlane://secrets"})["error"]
        assert "UNKNOWN_RESOURCE" in refused["message"]


def test_a_repository_without_rules_says_so(repository: Path) -> None:
    with McpClient(repository, "--as", "ann") as ann:
        assert "landlane init" in read(ann, "rules")


def test_a_subscriber_is_notified_of_changes_by_others(repository: Path) -> None:
    with McpClient(repository, "--as", "ann") as ann, McpClient(repository, "--as", "bob") as bob:
        assert ann.ask("resources/subscribe", {"uri": "landlane://claims"})["result"] == {}
        bob.call("claim", paths=["calc.py"])
        (note,) = hear_updates(ann, {"landlane://claims"})
        assert note["method"] == "notifications/resources/updated"
        ann.ask("resources/unsubscribe", {"uri": "landlane://claims"})
        ann.notes.clear()
        ann.ask("resources/subscribe", {"uri": "landlane://journal"})
        bob.call("release")
        assert len(hear_updates(ann, {"landlane://journal"})) == 1


def test_the_newer_protocol_uses_listen(repository: Path) -> None:
    with (
        McpClient(repository, "--as", "ann", version=MODERN) as ann,
        McpClient(repository, "--as", "bob") as bob,
    ):
        wished = {"notifications": {"resourceSubscriptions": ["landlane://tasks", "landlane://claims"]}}
        ann.send("subscriptions/listen", wished)
        assert "acknowledged" in ann.hear_next()["method"]
        bob.call("claim", paths=["calc.py"])
        landlane(repository, "task", "add", "Say y", "--as", "lead")
        notes = hear_updates(ann, {"landlane://tasks", "landlane://claims"})
        assert {note["method"] for note in notes} == {"notifications/resources/updated"}


def test_changes_before_the_watch_runs_are_reported(repository: Path) -> None:
    may_begin = threading.Event()

    class LateWatch(Watch):
        def _follow(self, token: Any) -> None:
            assert may_begin.wait(30)
            super()._follow(token)

    async def subscribe_and_hear() -> None:
        is_told = anyio.Event()

        async def publish(uri: str) -> None:
            if uri == "landlane://claims":
                is_told.set()

        watch = LateWatch(RepositoryPool(str(repository)), publish)
        await watch.start()
        with Landlane(repository, agent="bob") as bob:
            bob.claim("calc.py")
        may_begin.set()
        with anyio.fail_after(30):
            await is_told.wait()
        watch.close()

    anyio.run(subscribe_and_hear)
