"""Waiting in line for the right to write: a kernel lock that is fair, with an end to the wait.

SQLite's own waiting sleeps blindly for up to 100 ms and lets some writers starve. A file lock queues them in
the kernel, first come first served, and wakes exactly the next one.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class FairLock:
    """An exclusive lock on a file, for one thread of one process at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._own = _open(path)
        self._held = -1

    def try_acquire(self) -> bool:
        """Take the lock if it is free now."""
        if self._own < 0:
            raise OSError("the lock is closed")
        try:
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._held = self._own
        return True

    def acquire(self, timeout_seconds: float) -> bool:
        """Take the lock, or tell that the time was up."""
        self.release()  # what an owner who was interrupted at once could not let go
        if self.try_acquire():
            return True
        if timeout_seconds <= 0:
            return False
        # flock has no time-out: a thread waits in the kernel's line with a file of its own, and when nobody
        # wants its lock any more it lets go at once.
        file = _open(self._path)
        waiting = _Waiting(file)
        try:
            _thread.start_new_thread(waiting.run, ())
            if not waiting.done.acquire(timeout=timeout_seconds) and waiting.abandon():
                return False
            if waiting.error is not None:
                raise waiting.error
            self._held = file
        except BaseException:
            # A signal may come when the lock has just become ours: nobody else would let it go.
            if not waiting.abandon():
                self._held = file
                self.release()
            raise
        return True

    def release(self) -> None:
        """Let the next one go on."""
        held, self._held = self._held, -1
        if held < 0:
            return
        # Closing alone would not do: a child that was forked meanwhile has the file open, too.
        fcntl.flock(held, fcntl.LOCK_UN)
        if held != self._own:
            os.close(held)

    def close(self) -> None:
        """Let go of the lock and of its file."""
        self.release()
        own, self._own = self._own, -1
        if own >= 0:
            os.close(own)


class _Waiting:
    """One blocking wait in a thread, which its owner may give up."""

    def __init__(self, file: int) -> None:
        self.done = _thread.allocate_lock()
        self.done.acquire()
        self.error: OSError | None = None
        self._guard = _thread.allocate_lock()
        self._file = file
        self._is_abandoned = False
        self._is_over = False

    def run(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError as error:
            self.error = error
        with self._guard:
            self._is_over = True
            if self._is_abandoned:
                os.close(self._file)
        self.done.release()

    def abandon(self) -> bool:
        """Give up; tells whether the lock was still not ours, and the file is the thread's to close."""
        with self._guard:
            if self._is_over and not self._is_abandoned:
                return False
            self._is_abandoned = True
            return True


def _open(path: str) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)


def retry_until(attempt: Callable[[], bool], deadline: float, monotonic: Callable[[], float]) -> bool:
    """Try again after short, growing, jittered pauses: for locks that no kernel queue stands in front of."""
    pause = 0.0002
    while not attempt():
        if monotonic() >= deadline:
            return False
        jitter = int.from_bytes(os.urandom(2), "big") / 65536
        time.sleep(pause * (0.5 + jitter))
        pause = min(pause * 1.5, 0.005)
    return True
