"""Fork, stop and kill processes, and read their state from /proc."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from landlane.store.sqlite.lock_holder import find_lock_holder
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_SECONDS = 60.0


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return _read_state(pid) not in "ZX"
    except OSError:
        return False


def is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped the process."""
    return _read_state(pid) == "T"


def _read_state(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


def fork(work: Callable[[], object]) -> int:
    """Call a function in a forked child, which is faster than a new interpreter; return the child's pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001 - printed in the output of the test
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def wait_for_exit(pid: int, seconds: float = LIMIT_SECONDS) -> int:
    """Return the exit code of a child, or the signal that ended it as a negative number."""
    give_up_at = time.monotonic() + seconds
    while True:
        ended_pid, status = os.waitpid(pid, os.WNOHANG)
        if ended_pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > give_up_at:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError(f"not ended after {seconds} s")
        time.sleep(0.005)


def stop_outside_transactions(place: str, pids: list[int]) -> None:
    """Stop the processes while none of them is in a transaction, which would block every other writer."""
    for _ in range(50):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_until(
            lambda: all(_read_state(pid) in "TZ" for pid in pids)
        )  # signals arrive late on a busy machine
        if find_lock_holder(place) is None:
            return
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.02)
    raise AssertionError("there was always a transaction")


def kill_after(step: str, work: Callable[[Callable[[str], None]], object]) -> None:
    """Call a function in a child that is killed right after the named step."""

    def die(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        try:
            work(die)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"there is no step {step}"
    assert os.WTERMSIG(status) == signal.SIGKILL
