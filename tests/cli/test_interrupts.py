"""Ends that nobody planned: Ctrl-C, SIGTERM, a reader that is gone, a full or closed stdout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from landlane.sessions.wait_queue import ALIVE_MS
from tests.support.shell import LANDLANE
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance


def sockets(shell: Shell) -> list[Path]:
    """Return what is in the folder of sockets and its subfolders, which stay."""
    return [path for path in shell.state.glob("wake/**/*") if not path.is_dir()]


@pytest.mark.promise(
    "waiting.leaves-at-once",
    "A process that is stopped while waiting leaves the queue at once.",
)
@pytest.mark.promise(
    "cli.one-answer",
    "Every command with --json prints exactly one JSON object, even when it is interrupted.",
)
@pytest.mark.parametrize(
    ("number", "exit"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_a_stopped_waiter_leaves_the_queue_at_once(shell: Shell, number: int, exit: int) -> None:
    shell.run_json("claim", "a", "--as", "ann")
    with shell.start("claim", "a", "--as", "bob", "--wait", "60s", "--json") as waiter:
        shell.wait_for_waiter()
        waiter.signal(number)
        ended = waiter.end()

    assert ended.exit == exit
    assert ended.json()["code"] == "INTERRUPTED"
    assert shell.run_json("status")["waiters"] == []
    assert sockets(shell) == []
    assert shell.holders() == {"a": "ann"}


def test_a_killed_waiter_does_not_block_the_queue_for_long(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")
    with shell.start("claim", "a", "--as", "bob", "--wait", "60s") as waiter:
        shell.wait_for_waiter()
        waiter.signal(signal.SIGKILL)
        waiter.end()
    shell.run_json("release", "--all", "--as", "ann")
    shell.pass_time(ALIVE_MS / 1000)

    assert shell.run_json("claim", "a", "--as", "cat", "--wait", "20s")["granted"][0]["holder"] == "cat"


@pytest.mark.parametrize(("number", "exit"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=str)
def test_a_stopped_follower_leaves_nothing_behind(shell: Shell, number: int, exit: int) -> None:
    shell.run_json("join", "ann")
    with shell.start("log", "--follow") as follower:
        wait_until(lambda: sockets(shell))
        follower.signal(number)
        ended = follower.end()

    assert (ended.exit, ended.out) == (exit, "")
    assert "INTERRUPTED" in ended.err
    assert sockets(shell) == []


def test_a_stopped_holder_does_not_block_the_store(shell: Shell) -> None:
    with shell.start("log", "--follow") as follower:
        wait_until((shell.state / "wake").exists)
        follower.signal(signal.SIGSTOP)
        assert shell.run_json("claim", "a", "--as", "ann")["ok"]
        follower.signal(signal.SIGCONT)


def test_a_closed_stdout_changes_neither_the_work_nor_the_exit_code(shell: Shell) -> None:
    granted = shell.sh("landlane claim a --as ann >&-")
    refused = shell.sh("landlane claim a --as bob --json >&- 2>&-")

    assert (granted.exit, granted.err) == (0, "")
    assert refused.exit == 3
    assert shell.holders() == {"a": "ann"}


def test_a_command_works_with_all_streams_closed(shell: Shell) -> None:
    assert shell.sh("landlane claim a --as ann <&- >&- 2>&-").exit == 0
    assert shell.sh("landlane init --yes <&- >&- 2>&-").exit == 0
    assert shell.holders() == {"a": "ann"}


def test_a_closed_pipe_loses_the_answer_but_not_the_work(shell: Shell) -> None:
    snapshot, writing = os.pipe()
    os.close(snapshot)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [LANDLANE, "claim", "a", "--as", "ann", "--json"],
            cwd=shell.folder,
            stdout=pipe,
            stderr=subprocess.PIPE,
            timeout=60,
        )

    assert (done.returncode, done.stderr) == (1, b"")
    assert shell.holders() == {"a": "ann"}


def test_claims_piped_into_head_print_no_error(shell: Shell) -> None:
    shell.run_json("claim", *(f"file{number}" for number in range(300)), "--as", "ann")

    for command in ("claims", "claims --json", "log"):
        ended = shell.sh(f"landlane {command} | head -c 0")
        assert (ended.exit, ended.out, ended.err) == (0, "", ""), command


def test_a_full_disk_under_stdout_changes_the_exit_code(shell: Shell) -> None:
    assert shell.sh("landlane claim a --as ann > /dev/full").exit == 1
    assert shell.holders() == {"a": "ann"}


def test_a_closed_stderr_does_not_end_a_wait(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")
    snapshot, writing = os.pipe()
    os.close(snapshot)
    with os.fdopen(writing, "wb") as pipe:
        waiter = subprocess.Popen(
            [LANDLANE, "claim", "a", "--as", "bob", "--wait", "30s"], cwd=shell.folder, stderr=pipe
        )
        shell.wait_for_waiter()
        shell.run_json("release", "--all", "--as", "ann")

        assert waiter.wait(60) == 0


def test_a_process_in_the_background_does_not_draw_over_the_foreground() -> None:
    asks = (
        "import os, sys\n"
        "from landlane.platform.terminal import can_redraw\n"
        "print('foreground', can_redraw(sys.stderr), flush=True)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os.setpgid(0, 0)\n"
        "    print('background', can_redraw(sys.stderr), flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    words = [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", sys.executable, "-c", asks]
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    assert ended.stdout.split() == ["foreground", "True", "background", "False"]
