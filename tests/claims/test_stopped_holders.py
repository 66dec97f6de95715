"""A holder that wakes up after its lease: whatever it tries is refused, and its successor is unharmed.

The sleeper is a real process that is stopped and continued by signals; it is told what to try over a pipe.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from landlane.api import Landlane, Refused, Taken
from landlane.errors import LandlaneError
from tests.support.git import commit_text
from tests.support.project import let_time_pass
from tests.support.store_stress import Replay, all_entries
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(90), pytest.mark.slow]

T = TypeVar("T")

ANSWER_SECONDS = 30.0
READ_SECONDS = 5.0
CLAIM_MS = 10_000
SESSION_MS = 60_000
PATH = "src/shared.py"
BLOCK = "src/block.py"

# Answers one line for each line it reads: what came back, or which error.
SLEEPER = """
import json, os, signal, sys
from landlane.claims import take as claims
from landlane.api import Landlane
from landlane.errors import LandlaneError

house = Landlane(sys.argv[1], agent="sleeper")
block = None

def claim(path, ttl):
    outcome = house.claim(path, ttl=ttl)
    return [claim.token for claim in getattr(outcome, "granted", ())], getattr(outcome, "code", "")

def enter(path, ttl):
    global block
    block = house.claiming(path, ttl=ttl)
    return [claim.token for claim in block.__enter__().granted]

def leave_block():
    block.__exit__(None, None, None)

def claim_and_fall_asleep(path, ttl):
    judge = claims.find_obstacles
    def judge_asleep(*arguments):
        os.kill(os.getpid(), signal.SIGSTOP)  # in the middle of the transaction
        return judge(*arguments)
    claims.find_obstacles = judge_asleep
    try:
        return claim(path, ttl)
    finally:
        claims.find_obstacles = judge

doors = {
    "claim": claim, "enter": enter, "leave_block": leave_block,
    "claim_and_fall_asleep": claim_and_fall_asleep,
    "credentials": lambda: house.credentials,
    "renew": lambda *paths: [claim.token for claim in house.renew(*paths)],
    "release": lambda *paths: house.release(*paths),
    "check": lambda path, token: house.check(path, token).state,
    "leave": lambda: house.leave(),
}
for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        answer = {"answer": doors[name](*arguments)}
    except LandlaneError as error:
        answer = {"error": type(error).__name__, "code": error.code, "exit": error.exit_code}
    print(json.dumps(answer), flush=True)
"""


class StoppableProcess:
    """The process, its pipes and its sleep."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SLEEPER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, name: str, *arguments: object) -> dict[str, Any]:
        self.tell(name, *arguments)
        return self.answer()

    def tell(self, name: str, *arguments: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], ANSWER_SECONDS)[0], "no answer"
        return json.loads(self._process.stdout.readline())

    def stop(self) -> None:
        """Freeze it; it waits for a line, so it is inside no transaction."""
        self._process.send_signal(signal.SIGSTOP)
        self.await_stop()

    def await_stop(self) -> None:
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def start_sleeper() -> Iterator[Callable[[Path], StoppableProcess]]:
    made: list[StoppableProcess] = []

    def start(folder: Path) -> StoppableProcess:
        made.append(StoppableProcess(folder))
        return made[-1]

    yield start
    for sleeper in made:
        sleeper.close()


@pytest.fixture
def sleeper(
    repository: Path, store: str, start_sleeper: Callable[[Path], StoppableProcess]
) -> StoppableProcess:
    return start_sleeper(repository)


def take_over(repository: Path, *paths: str, after_ms: int) -> Landlane:
    """Let time pass until the leases are over, and take what they held."""
    successor = Landlane(repository, agent="successor")
    let_time_pass(successor._repo.store, after_ms)
    outcome = successor.claim(*paths, ttl="60s", wait="20s")
    assert isinstance(outcome, Taken), outcome
    return successor


def await_end_of_session(successor: Landlane) -> None:
    """Wait until the sleeper's whole session is over, not only what it held."""
    wait_until(lambda: "sleeper" not in {session.agent for session in successor.sessions()})


def assert_unharmed(successor: Landlane, path: str, token: int) -> None:
    assert successor.check(path, token).state == "held"
    assert [claim.token for claim in successor.claims(path)] == [token]
    entries = all_entries(successor._repo.store)
    assert Replay().walk(entries).trouble == []
    assert successor.verify().trouble == ()


def test_a_sleeper_that_wakes_up_after_its_lease_is_refused_everywhere(
    repository: Path, sleeper: StoppableProcess
) -> None:
    (token,), _ = sleeper.ask("claim", PATH, "10s")["answer"]
    sleeper.ask("enter", BLOCK, "10s")
    sleeper.stop()
    successor = take_over(repository, PATH, BLOCK, after_ms=CLAIM_MS)
    new = successor.claims(PATH)[0].token
    assert new > token
    sleeper.go_on()

    assert sleeper.ask("check", PATH, token)["code"] == "LEASE_OVER"
    assert sleeper.ask("check", PATH, new)["code"] == "LEASE_OVER"
    assert sleeper.ask("renew", PATH) == {"error": "Stale", "code": "LEASE_OVER", "exit": 4}
    assert sleeper.ask("release", PATH) == {"error": "Stale", "code": "LEASE_OVER", "exit": 4}
    assert sleeper.ask("leave_block") == {"error": "Stale", "code": "LEASE_OVER", "exit": 4}
    assert sleeper.ask("claim", PATH, "60s")["answer"] == [[], "CLAIM_HELD"]
    assert sleeper.ask("renew") == {"error": "Stale", "code": "LEASE_OVER", "exit": 4}
    assert sleeper.ask("release") == {"error": "Stale", "code": "LEASE_OVER", "exit": 4}
    assert_unharmed(successor, PATH, new)
    sleeper.ask("leave")
    assert_unharmed(successor, PATH, new)
    successor.close()


def test_a_sleeper_whose_session_is_over_is_refused_everywhere(
    repository: Path, store: str, start_sleeper: Callable[[Path], StoppableProcess]
) -> None:
    commit_text(repository, "landlane.toml", '[sessions]\nlease = "1m"\n')
    sleeper = start_sleeper(repository)
    (token,), _ = sleeper.ask("claim", PATH, "10s")["answer"]
    sleeper.ask("enter", BLOCK, "10s")
    sleeper.stop()
    commit_text(repository, "landlane.toml", "")
    successor = take_over(repository, PATH, BLOCK, after_ms=SESSION_MS)
    await_end_of_session(successor)
    new = successor.claims(PATH)[0].token
    sleeper.go_on()

    over = {"error": "Stale", "code": "SESSION_OVER", "exit": 4}
    for call in (["check", PATH, token], ["renew", PATH], ["renew"], ["release", PATH], ["release"]):
        assert sleeper.ask(*call) == over, call
    for call in (["leave_block"], ["claim", PATH, "60s"], ["claim", "elsewhere.py", "60s"], ["leave"]):
        assert sleeper.ask(*call) == over, call
    assert_unharmed(successor, PATH, new)
    successor.close()


def run_command(repository: Path, session: str, *words: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "landlane", *words, "--json"],
        cwd=repository,
        env={**os.environ, "LANDLANE_SESSION": session},
        capture_output=True,
        text=True,
        timeout=ANSWER_SECONDS,
    )
    return done.returncode, json.loads(done.stdout)


def test_commands_of_a_sleeper_end_with_the_code_for_stale(
    repository: Path, sleeper: StoppableProcess
) -> None:
    session = sleeper.ask("credentials")["answer"]
    (token,), _ = sleeper.ask("claim", PATH, "10s")["answer"]
    sleeper.stop()
    successor = take_over(repository, PATH, after_ms=CLAIM_MS)
    new = successor.claims(PATH)[0].token

    assert run_command(repository, session, "renew", PATH)[0] == 4
    assert run_command(repository, session, "release", PATH)[0] == 4
    assert run_command(repository, session, "release", PATH, "--token", str(token))[0] == 4
    assert run_command(repository, session, "check", PATH, "--token", str(token))[0] == 4
    code, answer = run_command(repository, session, "claim", PATH)
    assert (code, answer["code"], answer["refused"][0]["holder"]) == (3, "CLAIM_HELD", "successor")
    assert_unharmed(successor, PATH, new)
    sleeper.go_on()
    successor.close()


def test_commands_of_a_session_that_is_over_end_with_the_code_for_stale(
    repository: Path, store: str, start_sleeper: Callable[[Path], StoppableProcess]
) -> None:
    commit_text(repository, "landlane.toml", '[sessions]\nlease = "1m"\n')
    sleeper = start_sleeper(repository)
    session = sleeper.ask("credentials")["answer"]
    (token,), _ = sleeper.ask("claim", PATH, "10s")["answer"]
    sleeper.stop()
    commit_text(repository, "landlane.toml", "")
    successor = take_over(repository, PATH, after_ms=SESSION_MS)
    await_end_of_session(successor)
    new = successor.claims(PATH)[0].token

    for words in (["renew", PATH], ["renew"], ["release", PATH], ["release", "--all"], ["claim", "other.py"]):
        code, answer = run_command(repository, session, *words)
        assert (code, answer["code"]) == (4, "SESSION_OVER"), words
    for words in (["check", PATH, "--token", str(token)], ["leave"]):
        code, answer = run_command(repository, session, *words)
        assert (code, answer["code"]) == (4, "SESSION_OVER"), words
    assert_unharmed(successor, PATH, new)
    successor.close()


def test_a_writer_that_sleeps_in_its_transaction_keeps_no_reader_waiting_and_no_writer_for_ever(
    repository: Path, store: str, start_sleeper: Callable[[Path], StoppableProcess]
) -> None:
    commit_text(repository, "landlane.toml", '[store]\nwait = "2s"\n')
    sleeper = start_sleeper(repository)
    other = Landlane(repository, agent="other")
    silent = Landlane(repository, agent="silent")
    assert isinstance(silent.claim("short/lived.py", ttl="1s"), Taken)
    sleeper.tell("claim_and_fall_asleep", PATH, "60s")
    sleeper.await_stop()

    wait_until(lambda: other.claims() == [])  # the short lease is over: there is something to sweep
    for _ in range(5):
        assert seconds_of(other.claims)[0] < READ_SECONDS
    took, error = seconds_of(lambda: failure_of(lambda: other.claim("src/**")))
    assert error is not None
    assert error.code == "STORE_BUSY"
    assert took < 10

    sleeper.go_on()
    (token,), _ = sleeper.answer()["answer"]
    outcome = other.claim("src/**")
    assert isinstance(outcome, Refused)
    assert outcome.refused[0].holder == "sleeper"
    assert sleeper.ask("check", PATH, token)["answer"] == "held"
    assert Replay().walk(all_entries(other._repo.store)).trouble == []
    other.close()
    silent.close()


def seconds_of(work: Callable[[], T]) -> tuple[float, T]:
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result


def failure_of(work: Callable[[], object]) -> LandlaneError | None:
    try:
        work()
    except LandlaneError as error:
        return error
    return None
