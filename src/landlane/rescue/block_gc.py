"""Block `git gc` while objects are written that no ref names yet.

`git gc --prune=now` deletes what no ref led to when it began, even if one does by then. But it refuses to run
while another gc runs, which it reads from the file `gc.pid`; so we write our own process there. If we are
killed, git sees that the process is gone and ignores the file. The lock on that file, which exists only for a
moment, may stay; the next caller removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from landlane.git.lock import remove_stale_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

_WAIT_SECONDS = 120.0  # an ordinary gc keeps objects younger than two weeks, so it is safe to continue then
_OLD_SECONDS = 12 * 3600.0  # as in git


@contextlib.contextmanager
def block_gc(home: str) -> Generator[None]:
    """Wait until no gc runs, and let none start; one caller at a time."""
    folder = os.path.join(home, "landlane")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, "rescuing.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    path = os.path.join(home, "gc.pid")
    is_ours = False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        give_up_at = time.monotonic() + _WAIT_SECONDS
        while not (is_ours := _write_pid(path)) and time.monotonic() < give_up_at:
            remove_stale_lock(f"{path}.lock", home, os.path.dirname(home))
            time.sleep(0.02)
        yield
    finally:
        if is_ours:
            with contextlib.suppress(OSError):
                os.unlink(path)
        os.close(lock)


def _write_pid(path: str) -> bool:
    """Write our process into `gc.pid` as git does, unless a running one is there."""
    lock = f"{path}.lock"
    try:
        handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    except OSError:
        return False
    try:
        if _is_running(path):
            os.unlink(lock)
            return False
        os.write(handle, f"{os.getpid()} {os.uname().nodename}".encode())
        os.replace(lock, path)
    finally:
        os.close(handle)
    return True


def _is_running(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            pid, host = file.read(4096).split()[:2]
            age = time.time() - os.fstat(file.fileno()).st_mtime
        if age > _OLD_SECONDS:
            return False
        if host == os.uname().nodename:
            os.kill(int(pid), 0)
    except PermissionError:
        return True  # it runs, and belongs to another user
    except (OSError, ValueError, OverflowError):
        return False
    return True
