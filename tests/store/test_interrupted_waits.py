"""Signals that come at the worst moment of a wait: what was just won is let go, and nothing lies about."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from landlane.processes.child import Child
from landlane.store import file_lock as fairness
from landlane.store import wake
from landlane.store.file_lock import FairLock
from landlane.store.wake import WakeReason, WakeSockets

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


class WonAndInterrupted(fairness._BlockingWait):  # pyright: ignore[reportPrivateUsage]
    """A wait whose owner is interrupted when the lock has just become its own."""

    holder: FairLock

    def __init__(self, file: int) -> None:
        super().__init__(file)
        self._really_done = self.done
        self.done: Any = self

    def acquire(self, timeout: float) -> bool:
        self.holder.release()
        assert self._really_done.acquire(timeout=timeout)
        raise KeyboardInterrupt

    def release(self) -> None:
        self._really_done.release()


def test_a_lock_that_is_won_while_its_owner_is_interrupted_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, waiter = FairLock(str(tmp_path / "lock")), FairLock(str(tmp_path / "lock"))
    assert holder.try_acquire()
    monkeypatch.setattr(WonAndInterrupted, "holder", holder, raising=False)
    monkeypatch.setattr(fairness, "_BlockingWait", WonAndInterrupted)

    with pytest.raises(KeyboardInterrupt):
        waiter.acquire(30)

    assert holder.try_acquire()
    holder.close()
    waiter.close()


def test_who_was_interrupted_before_it_could_let_go_is_not_in_its_own_way(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first, lock = FairLock(path), FairLock(path)
    assert first.try_acquire()
    waiting = threading.Timer(0.05, first.release)  # it must stand in line: what was free is no second file
    waiting.start()
    assert lock.acquire(30)
    waiting.join()

    assert lock.acquire(0)
    first.close()
    lock.close()


def test_a_listener_that_is_interrupted_before_anybody_has_it_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        assert list(tmp_path.iterdir())
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(wake.os, "chmod", interrupt)
        with pytest.raises(KeyboardInterrupt):
            WakeSockets(str(tmp_path)).listen()

    assert list(tmp_path.iterdir()) == []

    listener = WakeSockets(str(tmp_path)).listen()
    child = os.fork()
    if not child:
        del listener  # the parent still listens
        os._exit(0)
    os.waitpid(child, 0)
    assert list(tmp_path.iterdir())
    del listener  # interrupted on its way to whoever would have closed it
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff\xfe", b"freed and much more than fits"])
def test_a_stray_datagram_wakes_a_listener_and_does_not_hide_the_next_one(
    tmp_path: Path, content: bytes
) -> None:
    sockets = WakeSockets(str(tmp_path))
    listener = sockets.listen()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stray:
        for path in tmp_path.iterdir():
            stray.sendto(content, str(path))
        assert listener.wait(10) == WakeReason.ENTRY

        for path in tmp_path.iterdir():
            stray.sendto(content, str(path))
        sockets.wake(WakeReason.FREED)
        assert listener.wait(10) == WakeReason.FREED

    assert listener.wait(0) == WakeReason.TIMEOUT
    sockets.close()
    listener.close()


def test_a_child_that_ended_in_time_is_not_late_because_its_parent_looks_late(tmp_path: Path) -> None:
    child = Child(["sh", "-c", "echo it; exit 3"], cwd=str(tmp_path))
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    ended = child.wait(0.0)

    assert (ended.exit_code, ended.stdout, ended.has_timed_out) == (3, "it\n", False)
