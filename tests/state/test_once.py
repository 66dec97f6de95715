"""What runs once: second callers, failures, crashes, interruptions and running again, on both stores."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import Malformed, Stale
from landlane.processes.child import ChildResult
from landlane.setup.rebuild_store import rebuild_store
from landlane.state import once
from landlane.state.once import RunCrashed, RunEnded, StillRunning
from tests.support.processes import is_alive
from tests.support.project import MINUTE, SQLITE_ONLY, Background, opened
from tests.support.shell import LANDLANE, Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from landlane.repository import Repository
    from tests.support.project import Agent, Project
    from tests.support.shell import Running

pytestmark = pytest.mark.contract

Outcome = RunEnded | RunCrashed | StillRunning


class Command:
    """Stands for a command: counts its runs and ends as it is told."""

    def __init__(self, exit_code: int = 0, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.runs = 0
        self.exit_code = exit_code
        self._meanwhile = meanwhile

    def __call__(self, on_start: Any, on_tick: Any) -> ChildResult:
        self.runs += 1
        on_start(os.getpid())
        on_tick()
        self._meanwhile()
        return ChildResult(exit_code=self.exit_code, stdout="made it", stderr="")


def run(agent: Agent, command: Command, *, key: str = "build", **more: Any) -> Outcome:
    return once.run_once(agent.repo, agent.session, key, ["make", "it all"], command, **more)


def ran(outcome: Outcome) -> tuple[bool, int | None, str]:
    assert isinstance(outcome, RunEnded), outcome
    return outcome.is_now, outcome.run.exit_code, outcome.run.agent


def test_a_command_runs_once_for_each_key(project: Project) -> None:
    ann, bob, command = project.agent("ann"), project.agent("bob"), Command()

    assert ran(run(ann, command)) == (True, 0, "ann")
    assert ran(run(bob, command)) == (False, 0, "ann")
    assert ran(run(bob, command, key="other")) == (True, 0, "bob")
    assert command.runs == 2


def test_the_run_is_remembered_with_its_output(project: Project) -> None:
    run(project.agent("ann"), Command())

    outcome = run(project.agent("bob"), Command())

    assert outcome.run.output == "made it"
    assert outcome.run.command == "make 'it all'"
    assert outcome.run.done_at is not None


def test_a_failed_run_is_run_again_only_when_told_to(project: Project) -> None:
    ann, command = project.agent("ann"), Command(exit_code=3)
    assert ran(run(ann, command)) == (True, 3, "ann")
    command.exit_code = 0

    assert ran(run(ann, command)) == (False, 3, "ann")
    assert ran(run(ann, command, is_again=True)) == (True, 0, "ann")
    assert ran(run(ann, command)) == (False, 0, "ann")
    assert command.runs == 2


def test_a_signal_is_told_as_a_shell_does(project: Project) -> None:
    assert ran(run(project.agent("ann"), Command(exit_code=-9)))[1] == 137


def test_start_and_end_are_entries(project: Project) -> None:
    run(project.agent("ann"), Command(exit_code=2))

    shown = [(entry.kind, entry.facts()) for entry in project.entries() if entry.kind.startswith("once.")]

    assert [kind for kind, _ in shown] == ["once.started", "once.ended"]
    assert shown[0][1]["pid"] == os.getpid()
    assert shown[1][1] == {"key": "build", "run": 1, "exit": 2}


def test_a_second_caller_waits_for_the_first(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    shown: list[str] = []
    second: list[Background[Outcome]] = []

    def meanwhile() -> None:
        waiter = Background(lambda: run(bob, command, on_wait=lambda run: shown.append(run.agent)))
        second.append(waiter)
        wait_until(lambda: bool(shown) or not waiter.is_running)

    command = Command(exit_code=4, meanwhile=meanwhile)
    run(ann, command)

    assert ran(second[0].result(20)) == (False, 4, "ann")
    assert shown == ["ann"]
    assert command.runs == 1


def test_who_waits_too_long_is_told_that_it_still_runs(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    outcomes: list[Outcome] = []

    def meanwhile() -> None:
        outcomes.append(run(bob, Command(), wait_ms=0))
        outcomes.append(run(bob, Command(), wait_ms=200, is_again=True))

    run(ann, Command(meanwhile=meanwhile))

    assert [type(outcome) for outcome in outcomes] == [StillRunning, StillRunning]
    assert outcomes[0].run.agent == "ann"


def test_who_says_again_while_it_runs_runs_it_after_that(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    waiting: list[str] = []
    second: list[Background[Outcome]] = []

    def meanwhile() -> None:
        again = Background(
            lambda: run(bob, command, is_again=True, on_wait=lambda run: waiting.append(run.agent))
        )
        second.append(again)
        wait_until(lambda: bool(waiting))

    command = Command()
    run(ann, Command(meanwhile=meanwhile))

    assert ran(second[0].result(20)) == (True, 0, "bob")


CRASHER = """
import os, sys
from pathlib import Path
from landlane.state import once
from landlane.sessions import join as sessions
from landlane.testing.repositories import open_test_repository
repo = open_test_repository(Path(sys.argv[1]), sys.argv[2])
ann = sessions.join(repo, "ann").session
def runner(on_start, on_tick):
    if len(sys.argv) > 3:
        on_start(int(sys.argv[3]))
    print("started", flush=True)
    sys.stdin.readline()
once.run_once(repo, ann, "build", ["make"], runner)
"""


def start_and_kill(project: Project, *child: str) -> None:
    """Let a process begin the run, and kill it."""
    words = [sys.executable, "-c", CRASHER, str(project.repository), project.place, *child]
    runner = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert runner.stdout is not None
    assert runner.stdout.readline() == b"started\n"
    assert isinstance(run(project.agent("bob"), Command(), wait_ms=0), StillRunning)
    runner.send_signal(signal.SIGKILL)
    runner.communicate(timeout=30)


@pytest.mark.promise("once.crash-is-no-success", "A crash is reported neither as success nor as failure.")
def test_a_crash_is_told_apart_from_success_and_failure(live_project: Project) -> None:
    start_and_kill(live_project)
    bob, command = live_project.agent("bob"), Command()

    crashed = run(bob, command)

    assert isinstance(crashed, RunCrashed)
    assert (crashed.run.agent, crashed.run.exit_code, command.runs) == ("ann", None, 0)
    assert ran(run(bob, command, is_again=True)) == (True, 0, "bob")
    assert ran(run(bob, command)) == (False, 0, "bob")


def test_a_waiter_hears_of_a_crash(live_project: Project) -> None:
    words = [sys.executable, "-c", CRASHER, str(live_project.repository), live_project.place]
    runner = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert runner.stdout is not None
    assert runner.stdout.readline() == b"started\n"
    bob = live_project.agent("bob")
    waiter = Background(lambda: run(bob, Command()))
    wait_until(lambda: live_project.listeners() > 0)

    runner.kill()
    runner.communicate(timeout=30)

    assert isinstance(waiter.result(15), RunCrashed)


def test_a_command_that_outlives_its_runner_still_runs(live_project: Project) -> None:
    orphan = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start_and_kill(live_project, str(orphan.pid))
    bob = live_project.agent("bob")

    still = run(bob, Command(), wait_ms=0, is_again=True)
    orphan.communicate(timeout=30)

    assert isinstance(still, StillRunning)
    assert isinstance(run(bob, Command()), RunCrashed)


def test_a_run_on_another_machine_has_crashed_when_its_session_is_over(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    columns = {"machine": "far-12345678", "boot_id": "far", "namespace": "far", "pid": 1, "started": 1}
    more = {"key": "build", "run": 1, "agent": "ann", "session": ann.session.id, "command": "", "begun_at": 1}
    ann.repo.store.change(lambda tx: tx.run("once_begin", **columns, **more))

    running = run(bob, Command(), wait_ms=0)
    ann.leave()

    assert isinstance(running, StillRunning)
    assert isinstance(run(bob, Command()), RunCrashed)


def test_an_interrupted_run_is_no_success(project: Project) -> None:
    ann = project.agent("ann")

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(ann, Command(meanwhile=interrupt))

    assert ran(run(ann, Command())) == (False, 130, "ann")


def test_a_long_run_keeps_its_session_alive(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src")

    def long(on_start: Any, on_tick: Any) -> ChildResult:
        for _ in range(5):
            project.clock.advance(20 * MINUTE)
            on_tick()
        return ChildResult(exit_code=0, stdout="", stderr="")

    once.run_once(ann.repo, ann.session, "build", ["make"], long)

    assert ann.holds() == ["src"]


def test_a_session_that_is_over_runs_nothing(project: Project) -> None:
    ann, command = project.agent("ann"), Command()
    project.clock.advance(31 * MINUTE)

    with pytest.raises(Stale):
        run(ann, command)
    with pytest.raises(Malformed):
        run(ann, command, key="no key")
    assert command.runs == 0


def test_one_of_many_threads_runs_it(live_project: Project) -> None:
    agents = [live_project.agent(f"a{number}") for number in range(6)]
    command = Command()

    results = [Background(lambda agent=agent: run(agent, command)) for agent in agents]

    assert [ran(result.result(30))[0] for result in results].count(True) == 1
    assert command.runs == 1


def _known(repo: Repository) -> Outcome:
    found = repo.store.view(lambda snapshot: once._read_status(repo, snapshot, "build"))
    assert found is not None
    return found


@SQLITE_ONLY
def test_a_rebuilt_store_knows_what_was_run(project: Project) -> None:
    run(project.agent("ann"), Command(exit_code=5))
    with opened(project) as repo:
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    project.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    known = _known(project.repo())
    assert (known.run.exit_code, known.run.agent, known.run.run) == (5, "ann", 1)
    assert known.run.done_at is not None


def test_a_key_inside_of_its_own_command_is_refused_and_not_waited_for(shell: Shell) -> None:
    inner = [LANDLANE, "once", "k", "--json", "--as", "ann", "--", "true"]

    outer = shell.run("once", "k", "--as", "ann", "--", *inner)
    again = shell.run("once", "k", "--as", "ann", "--again", "--", "sh", "-c", f"{shlex.join(inner)} && true")

    for ended in (outer, again):
        assert ended.exit == 2, ended
        assert json.loads(ended.out)["code"] == "ONCE_NESTED"


def once_words(key: str, agent: str, *command: str) -> list[str]:
    return [LANDLANE, "once", key, "--json", "--as", agent, "--", *command]


@pytest.mark.promise(
    "once.keys-that-wait-for-each-other-are-refused",
    "Runs of `once` that would wait for each other are refused at once, with the names of the keys.",
)
def test_keys_that_wait_for_each_other_are_refused(
    live_project: Project, repository: Path, tmp_path: Path
) -> None:
    del live_project  # it says which store
    shell, results = Shell(repository), tmp_path / "results"
    results.mkdir()

    def start(key: str, agent: str, other: str, mine: str, its: str) -> Running:
        """Run a key whose command waits until the other key runs, too, and then asks for it."""
        inner = shlex.join(once_words(other, f"{agent}-inner", "true"))
        script = (
            f"touch {results / mine}; until [ -e {results / its} ]; do sleep 0.02; done;"
            f" {inner} >{results / agent}.json"
        )
        return shell.start(*once_words(key, agent, "sh", "-c", script)[1:])

    with start("a", "ann", "b", "1", "2") as first, start("b", "bob", "a", "2", "1") as second:
        ended = [first.end(), second.end()]

    answers = [json.loads((results / f"{agent}.json").read_text()) for agent in ("ann", "bob")]
    refused = [answer for answer in answers if answer.get("code") == "ONCE_CYCLE"]
    assert refused, answers  # whose run fails because of it, so the other one hears that it failed
    assert set(refused[0]["cycle"]) == {"a", "b"}
    assert refused[0]["hint"].startswith("run ")
    assert 3 in [one.exit for one in ended]


def test_runs_that_wait_for_one_that_waits_for_none_of_them_are_not_refused(shell: Shell) -> None:
    inner = shlex.join(once_words("deps", "bob", "true"))
    with shell.start(*once_words("deps", "ann", "sleep", "1")[1:]) as first:
        wait_until(lambda: shell.run_json("log")["entries"][-1]["kind"] == "once.started")
        outer = shell.run(*once_words("tests", "bob", "sh", "-c", inner)[1:])
        assert first.end().exit == 0

    assert outer.exit == 0, outer


def test_a_killed_wait_inside_of_a_run_keeps_nobody_from_waiting(shell: Shell) -> None:
    with shell.start(*once_words("b", "ann", "sleep", "60")[1:]):
        wait_until(lambda: shell.run_json("log")["entries"][-1]["kind"] == "once.started")
        inner = shlex.join(once_words("b", "bob", "true"))
        script = f"{inner} & sleep 1; kill -9 $!; wait; sleep 60"
        with shell.start(*once_words("a", "bob", "sh", "-c", script)[1:]):
            with contextlib.closing(sqlite3.connect(shell.state / "store.db")) as db:
                query = "SELECT pid FROM once_waits"
                wait_until(lambda: db.execute(query).fetchone())
                ((pid,),) = db.execute(query).fetchall()
            wait_until(lambda: not is_alive(pid))
            words = once_words("a", "carl", "true")[1:]
            ended = shell.run(*words[:2], "--wait", "1s", *words[2:])
            assert ended.json()["code"] != "ONCE_CYCLE"
