"""Where nobody waits, the queue runs by itself: it outlives the author, drains, and its end loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.landing import queue
from landlane.landing.queue import drain_queue, serve_queue
from landlane.landing.records import list_landings
from landlane.resident import start as resident
from tests.support.git import git_line
from tests.support.landing_crashes import CrashTestbed, kill_at, leftover_refs, run_queue
from tests.support.processes import fork, is_stopped, wait_for_exit
from tests.support.shell import LANDLANE, Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from landlane.errors import LandlaneError
    from landlane.landing.queue import QueueRunner

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

LEASE_MS = 900


@pytest.fixture
def testbed(repository: Path) -> CrashTestbed:
    """A repository in which the queue runs by itself; its check waits where the file `gate` is a fifo."""
    made = CrashTestbed(repository)
    settings = repository / "landlane.toml"
    gate = repository.parent / "gate"
    answer = settings.read_text().replace("resident = false", "resident = true")
    answer = answer.replace("test ! -e red.txt", f"test ! -p {gate} || read line < {gate}; test ! -e red.txt")
    settings.write_text(answer)
    git_line(repository, "commit", "--quiet", "-am", "Let it run by itself")
    made.start = git_line(repository, "rev-parse", "main")
    return made


@pytest.fixture
def shell(testbed: CrashTestbed) -> Shell:
    return Shell(testbed.repository)


def land(testbed: CrashTestbed, shell: Shell, name: str, *more: str) -> str:
    testbed.branch(name, {f"{name}.txt": name})
    shell.run_json("claim", f"{name}.txt", "--as", f"author-of-{name}")
    return shell.run_json("land", name, "--as", f"author-of-{name}", *more)["landing"]["id"]


def states(shell: Shell) -> dict[str, str]:
    repo = open_repository(str(shell.folder))
    try:
        return {one.id: one.state for one in list_landings(repo, ())}
    finally:
        repo.close()


def residents(testbed: CrashTestbed) -> list[int]:
    """The pids of residents of this repository."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            is_here = os.readlink(folder / "cwd") == str(testbed.repository)
        except OSError:
            continue
        if is_here and b"resident" in words:
            found.append(int(folder.name))
    return found


def test_land_alone_is_enough_and_the_resident_ends_itself(testbed: CrashTestbed, shell: Shell) -> None:
    landing = land(testbed, shell, "one")
    wait_until(lambda: states(shell) == {landing: "landed"})
    wait_until(lambda: not residents(testbed))
    testbed.check_end({landing: "landed"})


def test_the_resident_outlives_its_author_and_a_hang_up(testbed: CrashTestbed, shell: Shell) -> None:
    gate = testbed.repository.parent / "gate"
    os.mkfifo(gate)
    testbed.branch("one", {"one.txt": "one"})
    script = f"{LANDLANE} claim one.txt --as ann && {LANDLANE} land one --as ann --json; kill -HUP 0"
    done = subprocess.run(["sh", "-c", script], cwd=testbed.repository, start_new_session=True, timeout=60)
    assert done.returncode == -signal.SIGHUP
    wait_until(lambda: residents(testbed))
    gate.write_text("go\n")
    wait_until(lambda: states(shell) == {"L1": "landed"})


def test_several_residents_at_once_do_no_harm(testbed: CrashTestbed, shell: Shell) -> None:
    names = ["one", "two", "three"]
    for name in names:
        testbed.branch(name, {f"{name}.txt": name})
        shell.run_json("claim", f"{name}.txt", "--as", name)
    running = [shell.start("land", name, "--as", name, "--json") for name in names]
    assert [one.end().exit for one in running] == [0, 0, 0]
    wait_until(lambda: set(states(shell).values()) == {"landed"}, 40)
    wait_until(lambda: not residents(testbed))
    testbed.check_end(dict.fromkeys(("L1", "L2", "L3"), "landed"))


def test_killing_the_resident_loses_nothing(testbed: CrashTestbed, shell: Shell) -> None:
    gate = testbed.repository.parent / "gate"
    os.mkfifo(gate)
    landing = land(testbed, shell, "one")
    wait_until(lambda: states(shell) == {landing: "testing"})
    for pid in residents(testbed):
        os.kill(pid, signal.SIGKILL)
    gate.unlink()
    second = land(testbed, shell, "two")
    wait_until(lambda: states(shell) == {landing: "landed", second: "landed"})
    wait_until(lambda: not residents(testbed))
    testbed.check_end({landing: "landed", second: "landed"})


def test_land_works_in_the_workspace_that_it_closes(testbed: CrashTestbed, shell: Shell) -> None:
    shell.run_json("task", "add", "Write one", "--path", "one.txt")
    shell.run_json("next", "--as", "ann")
    place = Path(shell.run_json("workspace", "open", "T1", "--as", "ann")["workspace"]["path"])
    testbed.branch("", {"one.txt": "one"}, folder=str(place))
    shell.at(place).run_json("land", "--as", "ann")
    wait_until(lambda: states(shell) == {"L1": "landed"})
    wait_until(lambda: not place.exists())
    wait_until(lambda: not residents(testbed))
    assert shell.run_json("workspace", "list")["workspaces"] == []
    assert leftover_refs(testbed.repository) == []


def test_branch_is_submitted_even_if_the_resident_cannot_start(testbed: CrashTestbed, shell: Shell) -> None:
    testbed.branch("one", {"one.txt": "one"})
    shell.run_json("claim", "one.txt", "--as", "ann")
    script = "import sys; sys.executable = '/nowhere/python'; from landlane.cli.main import run; run()"
    ended = shell.run_program(sys.executable, "-c", script, "land", "one", "--as", "ann")
    assert ended.exit == 0, ended
    assert "nothing runs the queue in the background" in ended.err
    assert states(shell) == {"L1": "queued"}
    assert "landed" in shell.run_text("queue", "run", "--drain")


def test_long_log_is_truncated_and_the_resident_has_no_identity(
    testbed: CrashTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nenv > {seen}.new; echo "$@" >> {seen}.new; mv {seen}.new {seen}\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("LANDLANE_SESSION", "s-aaaaaaaaaa")
    monkeypatch.setenv("LANDLANE_AGENT", "ann")
    monkeypatch.setenv("LANDLANE_GIT_LOCK", "1:/x")
    repo = testbed.open()
    monkeypatch.setenv("GIT_DIR", "/x")
    log = Path(repo.state_folder) / "resident.log"
    log.write_text("x" * 1_500_000)
    assert resident.start_queue_runner(repo.require_git()) == ""
    repo.close()
    wait_until(seen.exists)
    said = seen.read_text()
    assert "LANDLANE" not in said
    assert "GIT_DIR" not in said
    assert "-P -m landlane queue run --drain" in said
    assert log.stat().st_size < 1_000_000


def test_entry_submitted_while_the_runner_stops_still_lands(
    testbed: CrashTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = testbed.open()
    testbed.submit(repo, "one", {"one.txt": "one"})
    late = iter([("two", {"two.txt": "two"})])

    def drain_then_submit(runner: QueueRunner) -> LandlaneError | None:
        stop = drain_queue(runner)
        for name, files in late:
            testbed.submit(repo, name, files)  # its resident finds the queue being run, and ends
        return stop

    monkeypatch.setattr(queue, "drain_queue", drain_then_submit)
    assert serve_queue(repo.require_git(), "resident", is_drained=True) is None
    repo.close()
    testbed.check_end({"L1": "landed", "L2": "landed"})


def test_waiting_command_leaves_the_remaining_entries_to_the_resident(
    testbed: CrashTestbed, shell: Shell
) -> None:
    gate = testbed.repository.parent / "gate"
    os.mkfifo(gate)
    testbed.branch("one", {"one.txt": "one"})
    shell.run_json("claim", "one.txt", "--as", "ann")
    with shell.start("land", "one", "--as", "ann", "--wait", "--json") as first:
        wait_until(lambda: states(shell) == {"L1": "testing"})
        second = land(testbed, shell, "two")  # whose resident finds the queue being run
        wait_until(lambda: not residents(testbed))
        assert states(shell) == {"L1": "testing", second: "queued"}
        with gate.open("w") as pipe:
            pipe.write("go\n")
        gate.unlink()
        assert first.end().exit == 0
    wait_until(lambda: states(shell) == {"L1": "landed", second: "landed"})


def test_waiting_for_a_stuck_runner_ends(testbed: CrashTestbed, shell: Shell) -> None:
    repo = testbed.open()
    testbed.submit(repo, "one", {"one.txt": "one"})
    repo.close()
    pid = fork(lambda: run_queue(testbed.repository, kill_at("testing", 1, signal.SIGSTOP), lease_ms=600_000))
    wait_until(lambda: is_stopped(pid))
    try:
        assert states(shell) == {"L1": "testing"}
        shell.run_error("QUEUE_BUSY", "queue", "run", "--drain", "--wait", "500ms", exit=5)
    finally:
        os.kill(pid, signal.SIGKILL)
        wait_for_exit(pid)


def test_draining_waits_for_the_process_that_runs_the_queue(testbed: CrashTestbed, shell: Shell) -> None:
    repo = testbed.open()
    testbed.submit(repo, "one", {"one.txt": "one"})
    repo.close()
    pid = fork(lambda: run_queue(testbed.repository, kill_at("testing", 1, signal.SIGSTOP), lease_ms=600_000))
    wait_until(lambda: is_stopped(pid))
    with shell.start("queue", "run", "--drain") as drain:
        time.sleep(1)
        assert states(shell) == {"L1": "testing"}
        os.kill(pid, signal.SIGCONT)
        ended = drain.end()
    wait_for_exit(pid)
    assert ended.exit == 0, ended
    assert "runner runs the queue; waiting for it" in ended.err
    assert ended.out.startswith("✓ L1 landed on main as ")


def test_land_and_wait_takes_over_from_a_runner_that_is_silent(testbed: CrashTestbed, shell: Shell) -> None:
    repo = testbed.open()
    testbed.submit(repo, "one", {"one.txt": "one"})
    repo.close()
    pid = fork(
        lambda: run_queue(testbed.repository, kill_at("testing", 1, signal.SIGSTOP), lease_ms=LEASE_MS)
    )
    wait_until(lambda: is_stopped(pid))
    try:
        land(testbed, shell, "two", "--wait")
        assert set(states(shell).values()) == {"landed"}
    finally:
        os.kill(pid, signal.SIGCONT)
    assert wait_for_exit(pid) == 1
    testbed.check_end({"L1": "landed", "L2": "landed"})
