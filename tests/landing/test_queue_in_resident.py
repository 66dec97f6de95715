"""Where nobody waits, the queue runs by itself: it outlives the author, drains, and its end loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.landing import wait as waiting
from landlane.landing.queue import drain_queue
from landlane.landing.records import list_landings
from landlane.resident import start as resident
from tests.support.git import git_line
from tests.support.killing import Yard, fork, is_stopped, kill_at, leftover_refs, run_queue, wait_for
from tests.support.shell import LANDLANE, Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from landlane.errors import LandlaneError
    from landlane.landing.queue import QueueRunner

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

LEASE_MS = 900


@pytest.fixture
def yard(repository: Path) -> Yard:
    """A repository in which the queue runs by itself; its check waits where the file `gate` is a fifo."""
    made = Yard(repository)
    settings = repository / "landlane.toml"
    gate = repository.parent / "gate"
    told = settings.read_text().replace("resident = false", "resident = true")
    told = told.replace("test ! -e red.txt", f"test ! -p {gate} || read line < {gate}; test ! -e red.txt")
    settings.write_text(told)
    git_line(repository, "commit", "--quiet", "-am", "Let it run by itself")
    made.start = git_line(repository, "rev-parse", "main")
    return made


@pytest.fixture
def shell(yard: Yard) -> Shell:
    return Shell(yard.repository)


def land(yard: Yard, shell: Shell, name: str, *more: str) -> str:
    yard.branch(name, {f"{name}.txt": name})
    shell.ask("claim", f"{name}.txt", "--as", f"author-of-{name}")
    return shell.ask("land", name, "--as", f"author-of-{name}", *more)["landing"]["id"]


def states(shell: Shell) -> dict[str, str]:
    repo = open_repository(str(shell.folder))
    try:
        return {one.id: one.state for one in list_landings(repo, ())}
    finally:
        repo.close()


def residents(yard: Yard) -> list[int]:
    """The pids of residents of this repository."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            is_here = os.readlink(folder / "cwd") == str(yard.repository)
        except OSError:
            continue
        if is_here and b"resident" in words:
            found.append(int(folder.name))
    return found


def test_land_alone_is_enough_and_the_resident_ends_itself(yard: Yard, shell: Shell) -> None:
    landing = land(yard, shell, "one")
    wait_until(lambda: states(shell) == {landing: "landed"})
    wait_until(lambda: not residents(yard))
    yard.check_end({landing: "landed"})


def test_the_resident_outlives_its_author_and_a_hang_up(yard: Yard, shell: Shell) -> None:
    gate = yard.repository.parent / "gate"
    os.mkfifo(gate)
    yard.branch("one", {"one.txt": "one"})
    script = f"{LANDLANE} claim one.txt --as ann && {LANDLANE} land one --as ann --json; kill -HUP 0"
    done = subprocess.run(["sh", "-c", script], cwd=yard.repository, start_new_session=True, timeout=60)
    assert done.returncode == -signal.SIGHUP
    wait_until(lambda: residents(yard))
    gate.write_text("go\n")
    wait_until(lambda: states(shell) == {"L1": "landed"})


def test_several_residents_at_once_do_no_harm(yard: Yard, shell: Shell) -> None:
    names = ["one", "two", "three"]
    for name in names:
        yard.branch(name, {f"{name}.txt": name})
        shell.ask("claim", f"{name}.txt", "--as", name)
    running = [shell.start("land", name, "--as", name, "--json") for name in names]
    assert [one.end().exit for one in running] == [0, 0, 0]
    wait_until(lambda: set(states(shell).values()) == {"landed"}, 40)
    wait_until(lambda: not residents(yard))
    yard.check_end(dict.fromkeys(("L1", "L2", "L3"), "landed"))


def test_killing_the_resident_loses_nothing(yard: Yard, shell: Shell) -> None:
    gate = yard.repository.parent / "gate"
    os.mkfifo(gate)
    landing = land(yard, shell, "one")
    wait_until(lambda: states(shell) == {landing: "testing"})
    for pid in residents(yard):
        os.kill(pid, signal.SIGKILL)
    gate.unlink()
    second = land(yard, shell, "two")
    wait_until(lambda: states(shell) == {landing: "landed", second: "landed"})
    wait_until(lambda: not residents(yard))
    yard.check_end({landing: "landed", second: "landed"})


def test_it_works_from_a_workspace_that_goes_away_by_it(yard: Yard, shell: Shell) -> None:
    shell.ask("task", "add", "Write one", "--path", "one.txt")
    shell.ask("next", "--as", "ann")
    place = Path(shell.ask("workspace", "open", "T1", "--as", "ann")["workspace"]["path"])
    yard.branch("", {"one.txt": "one"}, folder=str(place))
    shell.at(place).ask("land", "--as", "ann")
    wait_until(lambda: states(shell) == {"L1": "landed"})
    wait_until(lambda: not place.exists())
    wait_until(lambda: not residents(yard))
    assert shell.ask("workspace", "list")["workspaces"] == []
    assert leftover_refs(yard.repository) == []


def test_a_resident_that_cannot_start_is_no_reason_not_to_submit(yard: Yard, shell: Shell) -> None:
    yard.branch("one", {"one.txt": "one"})
    shell.ask("claim", "one.txt", "--as", "ann")
    script = "import sys; sys.executable = '/nowhere/python'; from landlane.cli.main import run; run()"
    ended = shell.run_program(sys.executable, "-c", script, "land", "one", "--as", "ann")
    assert ended.exit == 0, ended
    assert "nothing runs the queue in the background" in ended.err
    assert states(shell) == {"L1": "queued"}
    assert "landed" in shell.tell("queue", "run", "--drain")


def test_the_log_begins_anew_when_it_is_long_and_nobody_is_acted_for(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nenv > {seen}.new; echo "$@" >> {seen}.new; mv {seen}.new {seen}\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("LANDLANE_SESSION", "s-aaaaaaaaaa")
    monkeypatch.setenv("LANDLANE_AGENT", "ann")
    monkeypatch.setenv("LANDLANE_GIT_LOCK", "1:/x")
    repo = yard.open()
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


def test_what_was_submitted_while_the_runner_let_go_is_not_left_behind(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = yard.open()
    yard.enter(repo, "one", {"one.txt": "one"})
    late = iter([("two", {"two.txt": "two"})])

    def drain_then_submit(runner: QueueRunner) -> LandlaneError | None:
        stop = drain_queue(runner)
        for name, files in late:
            yard.enter(repo, name, files)  # its resident finds the queue being run, and ends
        return stop

    monkeypatch.setattr(waiting, "drain_queue", drain_then_submit)
    assert waiting.serve_queue(repo.require_git(), "resident", is_drained=True) is None
    repo.close()
    yard.check_end({"L1": "landed", "L2": "landed"})


def test_who_waited_for_its_own_entry_leaves_the_rest_to_the_resident(yard: Yard, shell: Shell) -> None:
    gate = yard.repository.parent / "gate"
    os.mkfifo(gate)
    yard.branch("one", {"one.txt": "one"})
    shell.ask("claim", "one.txt", "--as", "ann")
    with shell.start("land", "one", "--as", "ann", "--wait", "--json") as first:
        wait_until(lambda: states(shell) == {"L1": "testing"})
        second = land(yard, shell, "two")  # whose resident finds the queue being run
        wait_until(lambda: not residents(yard))
        assert states(shell) == {"L1": "testing", second: "queued"}
        with gate.open("w") as pipe:
            pipe.write("go\n")
        gate.unlink()
        assert first.end().exit == 0
    wait_until(lambda: states(shell) == {"L1": "landed", second: "landed"})


def test_waiting_for_a_stuck_runner_ends(yard: Yard, shell: Shell) -> None:
    repo = yard.open()
    yard.enter(repo, "one", {"one.txt": "one"})
    repo.close()
    pid = fork(lambda: run_queue(yard.repository, kill_at("testing", 1, signal.SIGSTOP), lease_ms=600_000))
    wait_until(lambda: is_stopped(pid))
    try:
        assert states(shell) == {"L1": "testing"}
        shell.refuse("QUEUE_BUSY", "queue", "run", "--drain", "--wait", "500ms", exit=5)
        ended = shell.run("queue", "run", "--drain")
        assert ended.exit == 0
        assert "runner runs the queue already" in ended.err
    finally:
        os.kill(pid, signal.SIGKILL)
        wait_for(pid)


def test_land_and_wait_takes_over_from_a_runner_that_is_silent(yard: Yard, shell: Shell) -> None:
    repo = yard.open()
    yard.enter(repo, "one", {"one.txt": "one"})
    repo.close()
    pid = fork(lambda: run_queue(yard.repository, kill_at("testing", 1, signal.SIGSTOP), lease_ms=LEASE_MS))
    wait_until(lambda: is_stopped(pid))
    try:
        land(yard, shell, "two", "--wait")
        assert set(states(shell).values()) == {"landed"}
    finally:
        os.kill(pid, signal.SIGCONT)
    assert wait_for(pid) == 1
    yard.check_end({"L1": "landed", "L2": "landed"})
