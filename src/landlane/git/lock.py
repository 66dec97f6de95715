"""A lock for git commands that race, in the common git directory; it ends with its holder."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from contextlib import contextmanager

from landlane.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_NAME = "git.lock"
FETCH_LOCK = "fetch.lock"  # a fetch may take minutes, and a commit need not wait for it
_VARIABLE = "LANDLANE_GIT_LOCK"  # set for programs that run under the lock
_LIMIT_SECONDS = 600.0  # a commit under it runs the user's hooks, which may run tests
_FIRST_SLEEP, _LONGEST_SLEEP = 0.002, 0.05
_TICK_SECONDS = 0.3

_HERE = threading.local()  # the locks that this thread has


def lock_environment(common_dir: str) -> dict[str, str]:
    """Return variables for programs that run while this process holds the lock.

    Such a program would wait for a lock that is released after its own end; so it is refused at once.
    """
    return {_VARIABLE: f"{os.getpid()}:{common_dir}"}


@contextmanager
def git_lock(
    common_dir: str,
    purpose: str,
    *,
    name: str = _NAME,
    limit_seconds: float = _LIMIT_SECONDS,
    on_wait: Callable[[str], None] = lambda _: None,
    on_tick: Callable[[], None] | None = None,
) -> Generator[None]:
    """Hold the lock, so that no other process of ours runs a git command that races with this one.

    `on_wait` is called once with the holder; `on_tick` is called a few times a second.

    Raises:
        TimedOut: another process held it for too long.
    """
    folder = os.path.join(common_dir, "landlane")
    held: set[str] = _HERE.__dict__.setdefault("held", set())
    key = os.path.join(folder, name)
    if key in held:  # the caller has it already
        yield
        return
    os.makedirs(folder, exist_ok=True)
    file = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if os.environ.get(_VARIABLE) == f"{_read_holder(file)[0]}:{common_dir}":
            limit_seconds = 0.0
        _wait_for(file, purpose, limit_seconds, on_wait, on_tick or (lambda: None))
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid(), "purpose": purpose}).encode(), 0)
        held.add(key)
        yield
    finally:
        held.discard(key)
        os.close(file)  # this releases the lock


def _wait_for(
    file: int,
    purpose: str,
    limit_seconds: float,
    on_wait: Callable[[str], None],
    on_tick: Callable[[], None],
) -> None:
    deadline = time.monotonic() + limit_seconds
    tick_at = time.monotonic() + _TICK_SECONDS
    sleep = _FIRST_SLEEP
    has_reported = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, held_for = _read_holder(file)
            holder = f"process {pid} ({held_for})" if pid else "another process"
            if time.monotonic() >= deadline:
                length = (
                    f"for more than {limit_seconds:g} seconds" if limit_seconds else "runs this very program"
                )
                raise TimedOut(
                    f"git is busy: {holder} {length}",
                    code="GIT_BUSY",
                    hint="wait for it, or end that process if it hangs; the lock ends with it",
                    holder=holder,
                ) from None
            if not has_reported and deadline - time.monotonic() < limit_seconds - 1:
                on_wait(f"{purpose} waits for {holder}")
                has_reported = True
            if time.monotonic() >= tick_at:
                on_tick()
                tick_at = time.monotonic() + _TICK_SECONDS
            time.sleep(sleep)
            sleep = min(sleep * 1.5, _LONGEST_SLEEP)
        else:
            return


def _read_holder(file: int) -> tuple[int, str]:
    """Return the pid of the holder and its purpose; 0 when unknown."""
    try:
        holder = json.loads(os.pread(file, 1000, 0))
        return int(holder["pid"]), str(holder["purpose"])
    except (ValueError, KeyError, TypeError):
        return 0, ""
