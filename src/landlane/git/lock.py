"""One lock for git's racy verbs, keyed on the common git directory: it ends with its holder."""

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
FETCH_LOCK = "fetch.lock"  # a fetch may take minutes: whoever only commits does not wait for it
_VARIABLE = "LANDLANE_GIT_LOCK"  # tells what is started under the lock that it is
_LIMIT_SECONDS = 600.0  # a commit under it runs the user's hooks, and those may test
_FIRST_SLEEP, _LONGEST_SLEEP = 0.002, 0.05
_TICK_SECONDS = 0.3

_HERE = threading.local()  # which locks this thread has


def lock_environment(common_dir: str) -> dict[str, str]:
    """What to put into the environment of programs that run while this process holds the lock.

    Such a program would wait for a lock that is let go only after it has ended; so it is refused at once.
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
    """Be the only one of us that makes git do something racy in this repository.

    `on_wait` hears once who is in the way; `on_tick` is called a few times a second meanwhile.

    Raises:
        TimedOut: somebody has held it all the time.
    """
    folder = os.path.join(common_dir, "landlane")
    held: set[str] = _HERE.__dict__.setdefault("held", set())
    key = os.path.join(folder, name)
    if key in held:  # a step of something larger that has it already
        yield
        return
    os.makedirs(folder, exist_ok=True)
    file = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if os.environ.get(_VARIABLE) == f"{_holder_pid(file)}:{common_dir}":
            limit_seconds = 0.0
        _wait_for(file, purpose, limit_seconds, on_wait, on_tick or (lambda: None))
        _note(file, {"pid": os.getpid(), "purpose": purpose})
        held.add(key)
        yield
    finally:
        held.discard(key)
        os.close(file)  # and with it the lock


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
    has_told = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(file)
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
            if not has_told and deadline - time.monotonic() < limit_seconds - 1:
                on_wait(f"{purpose} waits for {holder}")
                has_told = True
            if time.monotonic() >= tick_at:
                on_tick()
                tick_at = time.monotonic() + _TICK_SECONDS
            time.sleep(sleep)
            sleep = min(sleep * 1.5, _LONGEST_SLEEP)
        else:
            return


def _note(file: int, holder: dict[str, object]) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(holder).encode(), 0)


def _holder(file: int) -> str:
    try:
        told = json.loads(os.pread(file, 1000, 0))
        return f"process {int(told['pid'])} ({told['purpose']})"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _holder_pid(file: int) -> int:
    try:
        return int(json.loads(os.pread(file, 1000, 0))["pid"])
    except (ValueError, KeyError, TypeError):
        return 0
