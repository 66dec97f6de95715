"""Moving and rebuilding while agents are at work: what was granted is in the new store, or was refused."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

# Claims one thing after the other and says so, until it is told that the store has gone or that it is enough.
WORKER = """
import sys
from landlane import Landlane
from landlane.errors import LandlaneError
name, enough = sys.argv[1], int(sys.argv[2])
with Landlane(agent=name) as landlane:
    for number in range(enough):
        try:
            taken = landlane.claim(f"{name}/{number}")
        except LandlaneError as error:
            print("stopped", error.code, flush=True)
            break
        print(taken.granted[0].pattern, taken.granted[0].token, flush=True)
"""


class Workers:
    def __init__(self, shell: Shell, count: int, enough: int) -> None:
        self._files = [shell.folder.parent / f"worker{number}.txt" for number in range(count)]
        self._processes: list[subprocess.Popen[bytes]] = []
        for number, path in enumerate(self._files):
            command = [sys.executable, "-c", WORKER, f"worker{number}", str(enough)]
            with path.open("wb") as file:
                self._processes.append(subprocess.Popen(command, cwd=shell.folder, stdout=file))

    def await_claims(self, count: int) -> None:
        wait_until(lambda: all(len(path.read_bytes().splitlines()) >= count for path in self._files))

    def end(self) -> tuple[dict[str, int], list[str]]:
        """What they were granted, and why they stopped."""
        for process in self._processes:
            assert process.wait(60) == 0
        lines = [line for path in self._files for line in path.read_text(encoding="utf-8").splitlines()]
        stopped = [line for line in lines if line.startswith("stopped")]
        granted = [line.split() for line in lines if not line.startswith("stopped")]
        return {pattern: int(token) for pattern, token in granted}, stopped


def held(shell: Shell) -> dict[str, int]:
    return {claim["pattern"]: claim["token"] for claim in shell.run_json("claims")["claims"]}


def test_every_grant_during_a_move_is_in_the_new_store_and_no_later_one_in_the_old(
    shell: Shell, tmp_path: Path
) -> None:
    shell.run_json("join", "somebody")
    workers = Workers(shell, 2, enough=5000)
    workers.await_claims(5)

    moved = shell.run_json("store", "move", str(tmp_path / "new.db"))["moved"]
    granted, stopped = workers.end()

    assert set(stopped) == {"stopped STORE_MOVED"}
    assert held(shell) == granted
    assert moved["claims"] == len(granted)
    assert shell.run_json("log", "--verify")["trouble"] == []


@pytest.mark.promise(
    "store.rebuild-loses-nothing",
    "Claims granted while a store is rebuilt are in the new store.",
)
def test_every_grant_around_a_rebuild_is_in_the_new_store(shell: Shell) -> None:
    shell.run_json("join", "somebody")
    workers = Workers(shell, 2, enough=100)
    workers.await_claims(5)

    shell.run_json("store", "rebuild")
    granted, stopped = workers.end()

    assert stopped == []
    assert len(granted) == 2 * 100
    assert held(shell) == granted
    assert len(set(granted.values())) == len(granted)
    assert shell.run_json("log", "--verify")["trouble"] == []


def test_two_concurrent_repairs_both_succeed(shell: Shell) -> None:
    shell.run_json("claim", "a", "b", "c", "--as", "ann")
    before = held(shell)
    for ending in ("", "-wal", "-shm"):
        (shell.state / f"store.db{ending}").unlink()

    repairs = [shell.start("doctor", "--fix", "--json") for _ in range(3)]
    ends = [repair.end() for repair in repairs]

    assert [end.exit for end in ends] == [0, 0, 0], ends
    assert held(shell) == before
    assert shell.run_json("log", "--verify")["trouble"] == []
