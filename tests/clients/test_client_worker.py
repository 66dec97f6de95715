"""A client as a worker, with a program that prints what a client prints: its change, its end, its silence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.clients.as_worker.child import ClientChild, LifeSigns
from landlane.clients.as_worker.command import MODULE
from landlane.processes.tree_child import WorkerChild
from landlane.protocol.worker.messages import (
    Usage,
    WorkAssignment,
    WorkComplete,
    WorkFailed,
    write_line,
)
from landlane.testing.repositories import git, make_repository
from landlane.workers.run_worker import run_worker
from tests.support.processes import is_alive
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.workers.run_worker import WorkerEnd

pytestmark = pytest.mark.integration

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "total_cost_usd": 0.5,
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
USAGE = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)
SAID = {"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "All is mended."}]}}
CALL = {
    "type": "assistant",
    "message": {"id": "m2", "content": [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}]},
}
FILES = {"calc.py": "x = 1\n", "gone.py": "y = 1\n", "latin.txt": "a\n", ".gitignore": "*.log\n"}


def printed(*objects: object) -> str:
    return "".join(f"cat <<'END'\n{json.dumps(one)}\nEND\n" for one in objects)


class WorkerFolder:
    """A repository, and a client whose lines of shell are the work."""

    def __init__(self, root: Path) -> None:
        self.repository = make_repository(root / "repository", files=FILES)
        git(self.repository, "config", "user.name", "Ada")
        git(self.repository, "config", "user.email", "ada@example.invalid")
        self.scratch = root / "scratch"
        self.scratch.mkdir()
        self.program = root / "client"
        self.base = git(self.repository, "rev-parse", "HEAD").strip()

    def command(self, *options: str) -> list[str]:
        words = ["-P", "-m", MODULE, "--program", str(self.program), *options]
        return [sys.executable, *words, "claude", "--"]

    def assignment(self, **facts: Any) -> WorkAssignment:
        known = {"assignment": "T1-1", "task": "T1", "attempt": 1, "title": "Mend add", "paths": ("**",)}
        place = {"folder": str(self.repository), "scratch": str(self.scratch), "base": self.base}
        return WorkAssignment(**{**known, **place, "heartbeat_seconds": 30.0, **facts})

    def write(self, *lines: str) -> None:
        self.program.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
        self.program.chmod(0o755)

    def run(
        self,
        *lines: str,
        options: tuple[str, ...] = (),
        on_tick: Callable[[], str] = lambda: "",
        **facts: Any,
    ) -> WorkerEnd:
        self.write(*lines)
        return run_worker(
            lambda streams: WorkerChild(self.command(*options), cwd=str(self.repository), streams=streams),
            self.assignment(**facts),
            on_tick=on_tick,
        )


@pytest.fixture
def place(tmp_path: Path) -> WorkerFolder:
    return WorkerFolder(tmp_path)


def test_what_is_uncommitted_is_committed_and_the_prompt_is_on_stdin(place: WorkerFolder) -> None:
    end = place.run(
        "cat > prompt.log",
        "echo by itself > own.txt; git add own.txt; git commit -qm Own",
        "echo 'x = 2' > calc.py; echo new > new.txt",
        printed(SAID, RESULT),
        may_commit=True,
    )

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.commit == git(place.repository, "rev-parse", "HEAD").strip()
    assert end.outcome.summary == "All is mended."
    assert end.outcome.usage == USAGE
    log = git(place.repository, "log", "--format=%s", f"{place.base}..HEAD").split("\n")
    assert log[:2] == ["Mend add", "Own"]
    assert git(place.repository, "status", "--short") == ""
    assert (place.repository / "prompt.log").read_text().startswith("Task T1: Mend add\n")


def test_no_change_is_reported_as_no_change(place: WorkerFolder) -> None:
    end = place.run(printed(SAID, RESULT), may_commit=True)
    assert isinstance(end.outcome, WorkComplete)
    assert end.outcome.commit is None
    end = place.run("echo junk > junk.log", printed(SAID, RESULT))
    assert isinstance(end.outcome, WorkComplete)
    assert (end.outcome.patch, end.outcome.files) == (None, None)


def test_a_hook_that_refuses_the_commit_is_the_reason(place: WorkerFolder) -> None:
    hook = place.repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho lint: line 3 is too long >&2\nexit 1\n")
    hook.chmod(0o755)

    end = place.run("echo 'x = 2' > calc.py", printed(SAID, RESULT), may_commit=True)

    assert isinstance(end.outcome, WorkFailed)
    assert "line 3 is too long" in end.outcome.reason
    assert end.outcome.notes == "All is mended."


def test_a_patch_holds_new_deleted_binary_and_foreign_files(place: WorkerFolder, tmp_path: Path) -> None:
    git(place.repository, "config", "diff.noprefix", "true")
    end = place.run(
        "echo 'x = 2' > calc.py; git add calc.py; rm gone.py",
        r"printf '\0\1\2' > raw.bin; printf 'caf\351\n' > latin.txt; mkdir -p 'a b'; echo new > 'a b/ü.txt'",
        printed(SAID, RESULT),
    )

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.patch
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(place.repository), str(other))
    (tmp_path / "patch").write_text(end.outcome.patch)
    git(other, "apply", "--index", str(tmp_path / "patch"))
    assert (other / "latin.txt").read_bytes() == b"caf\xe9\n"
    assert (other / "raw.bin").read_bytes() == b"\0\1\2"
    assert (other / "a b" / "ü.txt").read_text() == "new\n"
    assert (other / "calc.py").read_text() == "x = 2\n"
    assert not (other / "gone.py").exists()
    # Its own index is as it left it: one file staged, the others not.
    assert git(place.repository, "diff", "--cached", "--name-only").split() == ["calc.py"]


@pytest.mark.slow
def test_change_too_large_for_a_patch_is_returned_as_files(place: WorkerFolder) -> None:
    end = place.run("seq 600000 > big.txt; echo 'x = 2' > calc.py", printed(SAID, RESULT))

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.files == ("big.txt", "calc.py")
    assert (place.scratch / "big.txt").read_bytes() == (place.repository / "big.txt").read_bytes()


def test_unusual_output_of_a_client_is_harmless(place: WorkerFolder) -> None:
    odd = {"type": "assistant", "message": {"id": "m7", "content": [{"type": "text", "text": "\0 \ud800 é"}]}}
    end = place.run(
        printed({"type": "assistant", "message": 7}, odd, RESULT),
        "head -c 3000000 /dev/zero; echo; head -c 20000 /dev/urandom; echo; echo '{\"type\":'",
        "head -c 200000 /dev/zero >&2; echo 'echo x' > calc.py",
        may_commit=True,
    )

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.summary == "\ufffd ? é"
    assert end.outcome.commit


def test_stopped_client_leaves_only_its_notes(place: WorkerFolder) -> None:
    mark = place.scratch / "ready"
    # It does not heed SIGTERM, and what it started has left its group, its session and its parent.
    leave = f"(setsid sh -c 'trap \"\" TERM; echo $$ >> {mark}; while :; do sleep 1; done' &)"
    end = place.run(
        "trap '' TERM",
        printed(SAID, {**RESULT, "type": "result"}, CALL),
        f"echo $$ > {mark}; {leave}; {leave}",
        "while :; do sleep 1; done",
        options=("--grace", "0.2"),
        on_tick=lambda: "enough" if mark.exists() and len(mark.read_text().split()) == 3 else "",
    )

    assert isinstance(end.outcome, WorkFailed)
    assert (end.outcome.code, end.outcome.reason) == ("stopped", "enough")
    assert end.outcome.usage == USAGE
    assert end.outcome.notes == "All is mended."
    assert [pid for pid in mark.read_text().split() if is_alive(int(pid))] == []


def test_processes_left_by_a_client_are_ended(place: WorkerFolder) -> None:
    mark = place.scratch / "pid"
    end = place.run(
        # With an environment of its own, as some clients start their servers.
        f"env -i PATH=$PATH setsid sh -c 'echo $$ > {mark}; exec sleep 1000' &",
        f"while ! [ -s {mark} ]; do sleep 0.01; done",
        printed(SAID, RESULT),
    )

    assert isinstance(end.outcome, WorkComplete)
    assert not is_alive(int(mark.read_text()))


@pytest.mark.slow
def test_a_client_that_shows_no_life_is_not_vouched_for(place: WorkerFolder) -> None:
    end = place.run(
        printed(SAID), "exec sleep 1000", options=("--quiet", "0.1", "--grace", "0.2"), heartbeat_seconds=4
    )

    assert isinstance(end.outcome, WorkFailed)
    assert end.outcome.code == "silent"
    assert end.outcome.notes == "All is mended."


def test_a_client_that_only_tries_again_is_ended_as_limited(place: WorkerFolder) -> None:
    again = {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}
    end = place.run(printed(again), "exec sleep 1000", options=("--patience", "0.1", "--grace", "0.2"))

    assert isinstance(end.outcome, WorkFailed)
    assert end.outcome.code == "rate_limited"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "reason"), [("exit 3", "exit code 3"), ("echo dead end >&2; kill -9 $$", "dead end")]
)
def test_a_client_that_just_ends_has_failed(place: WorkerFolder, program: str, reason: str) -> None:
    end = place.run(program)
    assert isinstance(end.outcome, WorkFailed)
    assert end.outcome.code == "failed"
    assert reason in end.outcome.reason


def test_without_its_program_it_is_not_tried_again(place: WorkerFolder) -> None:
    place.write("true")
    place.program.unlink()
    child = [*place.command()]
    end = run_worker(
        lambda streams: WorkerChild(child, cwd=str(place.repository), streams=streams), place.assignment()
    )
    assert isinstance(end.outcome, WorkFailed)
    assert end.outcome.retry is False


def test_client_is_ended_when_the_supervisor_is_gone(place: WorkerFolder) -> None:
    mark = place.scratch / "pid"
    place.write(f"echo $$ > {mark}", "exec sleep 1000")
    with subprocess.Popen(
        place.command("--grace", "0.2"),
        cwd=place.repository,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(write_line(place.assignment(heartbeat_seconds=0.3)))
        worker.stdin.close()
        assert b"Heartbeat" in worker.stdout.readline()
        wait_until(lambda: mark.exists() and mark.read_text().endswith("\n"))
        worker.stdout.close()
        assert worker.wait(20) != 0
    assert not is_alive(int(mark.read_text()))


def test_signs_of_life_are_read_from_its_processes(tmp_path: Path) -> None:
    busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo computed; sleep 1000 & echo $!; wait"
    with open(os.devnull, "rb") as nothing:
        child = ClientChild(["sh", "-c", busy], cwd=str(tmp_path), environment={}, stdin=nothing.fileno())
    began = time.monotonic()
    try:
        lines = child.read_lines(lambda: True)
        assert next(lines) == (False, "computed")
        assert child.cpu_seconds() > 0.02
        assert next(lines)[1].isdecimal()
        assert child.has_younger(began)
        assert not child.has_younger(time.monotonic() + 3_600)
    finally:
        assert child.end(grace_seconds=1) == -signal.SIGTERM
        child.close()


class LifeSignRecord:
    """What a pulse is felt of, as told."""

    def __init__(self) -> None:
        self.printed_at = 0.0
        self.cpu = 0.0
        self.has_command = False

    def cpu_seconds(self) -> float:
        return self.cpu

    def has_younger(self, instant: float) -> bool:
        return self.has_command and instant >= 0


def test_output_computing_and_a_running_command_are_life_and_nothing_else_is() -> None:
    patient, clock = LifeSignRecord(), [0.0]
    calls: list[float] = []
    signs = LifeSigns(patient, 600.0, lambda: min(calls, default=None), lambda: clock[0])

    def is_alive_after(seconds: float) -> bool:
        clock[0] += seconds
        return signs.are_recent()

    assert is_alive_after(599)
    assert not is_alive_after(1)
    patient.printed_at = clock[0] + 1
    assert is_alive_after(2)
    patient.cpu += 60
    assert is_alive_after(599)
    patient.cpu += 0.4  # an idle program with timers
    assert not is_alive_after(600)
    patient.has_command = True  # no call is under way: it is a server that it started for itself
    assert not is_alive_after(1)
    calls.append(1.0)
    assert is_alive_after(100_000)
    assert is_alive_after(100_000)
