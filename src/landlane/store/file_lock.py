"""A fair lock on a file, with a timeout: writers of a SQLite store queue here.

SQLite polls for its own lock with sleeps of up to 100 ms, and some writers starve. The kernel queues waiters
for a file lock in order of arrival and wakes exactly the next one.
"""

from __future__ import annotations

import _thread
import fcntl
import os

from landlane.files import open_beside


class FairLock:
    """An exclusive lock on a file, for one thread of one process at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._own = _open(path)
        self._held = -1

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether it was."""
        if self._own < 0:
            raise OSError("the lock is closed")
        try:
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._held = self._own
        return True

    def acquire(self, timeout_seconds: float) -> bool:
        """Take the lock; return False if it is still held after the timeout."""
        self.release()  # a signal may have interrupted the last owner before it could release the lock
        if self.try_acquire():
            return True
        if timeout_seconds <= 0:
            return False
        # flock has no timeout, so a thread waits in the kernel's queue with its own open file. If the wait is
        # abandoned, the thread releases the lock as soon as it gets it.
        file = _open(self._path)
        wait = _BlockingWait(file)
        try:
            _thread.start_new_thread(wait.run, ())
            if not wait.done.acquire(timeout=timeout_seconds) and wait.abandon():
                return False
            if wait.error is not None:
                raise wait.error
            self._held = file
        except BaseException:
            # A signal may arrive just after the thread got the lock; then it must be released here.
            if not wait.abandon():
                self._held = file
                self.release()
            raise
        return True

    def release(self) -> None:
        """Release the lock, if it is held."""
        held, self._held = self._held, -1
        if held < 0:
            return
        # Closing is not enough: a child that was forked meanwhile has the same file open.
        fcntl.flock(held, fcntl.LOCK_UN)
        if held != self._own:
            os.close(held)

    def close(self) -> None:
        """Release the lock and close its file."""
        self.release()
        own, self._own = self._own, -1
        if own >= 0:
            os.close(own)


class _BlockingWait:
    """A wait for the lock in a thread of its own, which can be abandoned."""

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
        """Return False if the lock was obtained already; otherwise the thread closes the file."""
        with self._guard:
            if self._is_over and not self._is_abandoned:
                return False
            self._is_abandoned = True
            return True


def _open(path: str) -> int:
    return open_beside(path, os.O_CREAT | os.O_RDWR)
