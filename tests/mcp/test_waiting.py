"""Waiting through a tool: progress is told, the wait ends in time, and who stops waiting gets nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from landlane.mcp.background_jobs import Jobs
from landlane.mcp.tool_schemas import LONGEST_WAIT_SECONDS
from tests.mcp.speaking import MODERN, McpClient

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ERAS = pytest.mark.parametrize("version", ["2025-11-25", MODERN])


@ERAS
def test_a_waiting_call_reports_the_holder_and_gets_the_claim_later(repository: Path, version: str) -> None:
    with (
        McpClient(repository, "--as", "ann") as ann,
        McpClient(repository, "--as", "bob", version=version) as bob,
    ):
        ann.call("claim", paths=["calc.py"])
        call = {"name": "claim", "arguments": {"paths": ["calc.py"], "wait": 40}}
        number = bob.send("tools/call", call, progressToken="p1")

        note = bob.hear_next()
        assert note["method"] == "notifications/progress"
        assert note["params"]["progressToken"] == "p1"
        assert "ann" in note["params"]["message"]
        ann.call("release")
        assert bob.answer_to(bob.hear(number))["granted"]


@pytest.mark.promise(
    "mcp.waits-end-in-time",
    "A wait through the MCP server ends before clients time out, and says how to continue.",
)
def test_a_wait_times_out_with_a_hint(repository: Path) -> None:
    with McpClient(repository, "--as", "ann") as ann, McpClient(repository, "--as", "bob") as bob:
        ann.call("claim", paths=["calc.py"])
        refused = bob.call("claim", paths=["calc.py"], wait=1)
        assert refused["code"] == "WAIT_TIMED_OUT"
        assert "call claim again" in refused["hint"]
        assert "again" in bob.call("next", wait=1)["hint"]


def test_no_wait_is_longer_than_clients_wait() -> None:
    assert LONGEST_WAIT_SECONDS < 60


@pytest.mark.promise(
    "mcp.given-up-waits-take-nothing",
    "A client that cancels a wait never ends up holding the claim.",
)
def test_a_cancelled_wait_takes_no_claim(repository: Path) -> None:
    with (
        McpClient(repository, "--as", "ann") as ann,
        McpClient(repository, "--as", "bob") as bob,
        McpClient(repository, "--as", "eve") as eve,
    ):
        ann.call("claim", paths=["calc.py"])
        call = {"name": "claim", "arguments": {"paths": ["calc.py"], "wait": 40}}
        number = bob.send("tools/call", call, progressToken=1)
        bob.hear_next()  # it stands in line now
        bob.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": number, "reason": "x"},
            }
        )
        assert bob.call("status")["ok"]  # the server is there for others meanwhile
        ann.call("release")
        # Whether bob's place came up before the cancellation was heard or not, eve gets it in the end.
        assert eve.call("claim", paths=["calc.py"], wait=30)["granted"]
        assert [one["holder"] for one in eve.call("status")["claims"]] == ["eve"]


def test_work_that_outlasts_a_call_is_found_again_by_the_next() -> None:
    go_on = threading.Event()
    begun: list[int] = []

    def work() -> dict[str, bool]:
        begun.append(1)
        go_on.wait(30)
        return {"ok": True}

    jobs = Jobs()
    assert jobs.run("key", work, 0.01) is None
    go_on.set()
    assert jobs.run("key", work, 30) == {"ok": True}
    assert begun == [1]
    assert jobs.run("key", work, 30) == {"ok": True}
    assert begun == [1, 1]


def test_a_late_caller_does_not_remove_a_newer_job() -> None:
    jobs = Jobs()
    may_end, may_go_on, is_held_up = threading.Event(), threading.Event(), threading.Event()

    class Guard:
        """Holds one thread up before it comes in the second time."""

        def __init__(self) -> None:
            self._lock = threading.Lock()
            self._visits = 0

        def __enter__(self) -> None:
            if threading.current_thread() is late:
                self._visits += 1
                if self._visits == 2:
                    is_held_up.set()
                    assert may_go_on.wait(30)
            self._lock.acquire()

        def __exit__(self, *_: object) -> None:
            self._lock.release()

    def first() -> dict[str, int]:
        assert may_end.wait(30)
        return {"run": 1}

    late = threading.Thread(target=lambda: heard.append(jobs.run("key", first, 30)), daemon=True)
    heard: list[object] = []
    jobs._guard = Guard()  # type: ignore[assignment]
    late.start()
    may_end.set()
    assert is_held_up.wait(30)
    assert jobs.run("key", first, 30) == {"run": 1}

    second_may_end = threading.Event()
    begun: list[int] = []

    def second() -> dict[str, int]:
        begun.append(1)
        assert second_may_end.wait(30)
        return {"run": 2}

    assert jobs.run("key", second, 0) is None
    may_go_on.set()
    late.join(30)
    assert jobs.run("key", second, 0) is None
    second_may_end.set()
    assert jobs.run("key", second, 30) == {"run": 2}
    assert heard == [{"run": 1}]
    assert begun == [1]
