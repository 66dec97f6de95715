"""Locks: ours for git commands that race, which ends with its holder, and git's own lock files.

A lock file that a killed git left behind is removed. While a hook runs, git need not have its lock open.
So the owner is searched in two ways: which process has the file open, and which git works where it applies.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from contextlib import contextmanager

from landlane.errors import RepositoryError, TimedOut
from landlane.files import is_at_or_below, open_beside, read_first_line
from landlane.platform.process import (
    age_seconds,
    can_see_processes,
    list_pids,
    open_files,
    owner_of,
    read_name,
    working_folder,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from landlane.git.discovery import Checkout


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
    os.makedirs(folder, mode=0o700, exist_ok=True)
    file = open_beside(os.path.join(folder, name), os.O_RDWR | os.O_CREAT)
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
    begun_at = tick_at = time.monotonic()
    has_reported = False

    def on_retry() -> None:
        nonlocal has_reported, tick_at
        now = time.monotonic()
        if not has_reported and now > begun_at + 1:
            on_wait(f"{purpose} waits for {_describe_holder(file)}")
            has_reported = True
        if now >= tick_at + _TICK_SECONDS:
            on_tick()
            tick_at = now

    if lock_file_within(file, limit_seconds, on_retry):
        return
    holder = _describe_holder(file)
    length = f"for more than {limit_seconds:g} seconds" if limit_seconds else "runs this very program"
    raise TimedOut(
        f"git is busy: {holder} {length}",
        code="GIT_BUSY",
        hint="wait for it, or end that process if it hangs; the lock ends with it",
        holder=holder,
    )


def lock_file_within(file: int, limit_seconds: float, on_retry: Callable[[], None] = lambda: None) -> bool:
    """Lock an open file for this process; return whether that worked in time."""
    give_up_at = time.monotonic() + limit_seconds
    sleep = _FIRST_SLEEP
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                return False
            on_retry()
            time.sleep(sleep)
            sleep = min(sleep * 1.5, _LONGEST_SLEEP)


def _describe_holder(file: int) -> str:
    pid, purpose = _read_holder(file)
    return f"process {pid} ({purpose})" if pid else "another process"


def _read_holder(file: int) -> tuple[int, str]:
    """Return the pid of the holder and its purpose; 0 when unknown."""
    try:
        holder = json.loads(os.pread(file, 1000, 0))
        return int(holder["pid"]), str(holder["purpose"])
    except (ValueError, KeyError, TypeError):
        return 0, ""


_OLD_SECONDS = 3.0  # a younger lock may belong to a git that is not visible yet
_LOCK_FILE_LIMIT_SECONDS = 10.0
_SLEEP_SECONDS = 0.05
_ANYWHERE = ("/",)  # every git on this machine can write a branch, wherever it works


def wait_for_index(here: Checkout) -> None:
    """Wait until the index is not locked; the caller holds the lock on git.

    Raises:
        RepositoryError: it is locked for too long.
    """
    _wait_for_lock_file(os.path.join(here.git_dir, "index.lock"), _folders_of(here))


def wait_for_locks(here: Checkout) -> None:
    """Wait until nothing is locked that a commit must write; the caller holds the lock on git.

    Raises:
        RepositoryError: something is locked for too long.
    """
    wait_for_index(here)
    _wait_for_lock_file(os.path.join(here.git_dir, "HEAD.lock"), _folders_of(here))
    ref = read_first_line(os.path.join(here.git_dir, "HEAD")).removeprefix("ref: ")
    if ref.startswith("refs/"):
        _wait_for_lock_file(os.path.join(here.common_dir, f"{ref}.lock"), _ANYWHERE)


def wait_for_refs(home: Checkout, refs: Sequence[str], worktrees: Sequence[str]) -> None:
    """Wait until these refs, our own refs and the packed refs are not locked.

    Raises:
        RepositoryError: one of them is locked for too long.
    """
    folders = (*_folders_of(home), *(os.path.realpath(folder) for folder in worktrees))
    for name in ("packed-refs", *refs):
        _wait_for_lock_file(os.path.join(home.common_dir, f"{name}.lock"), folders)
    for folder, _, names in os.walk(os.path.join(home.common_dir, "refs", "landlane")):
        for name in names:
            if name.endswith(".lock"):
                _wait_for_lock_file(os.path.join(folder, name), folders)


def remove_stale_lock(path: str, *folders: str) -> None:
    """Remove a lock that a killed process left behind, if no git works in these folders."""
    folder, name = os.path.split(path)
    real = os.path.join(os.path.realpath(folder), name)  # as it appears among open files
    try:
        if time.time() - os.lstat(real).st_mtime >= _OLD_SECONDS:
            _find_owners(real, tuple(os.path.realpath(one) for one in folders))
    except OSError:
        return  # it is gone by itself, or not ours to remove


def _folders_of(here: Checkout) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder) for folder in (here.root, here.git_dir))


def _wait_for_lock_file(path: str, folders: tuple[str, ...]) -> None:
    give_up_at = time.monotonic() + _LOCK_FILE_LIMIT_SECONDS
    while (owners := _find_owners(path, folders)) is not None:
        if time.monotonic() >= give_up_at:
            raise RepositoryError(
                f"{os.path.basename(path)} is held by {', '.join(owners[:3]) or 'a git that just ended'}",
                code="GIT_LOCKED",
                hint="wait until it has ended, or end it; then try again",
                holder=owners[0] if owners else "",
            )
        time.sleep(_SLEEP_SECONDS)


def _find_owners(path: str, folders: tuple[str, ...]) -> list[str] | None:
    """Return the possible owners of a lock; None when there is none, or it was stale and is removed."""
    try:
        lock = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    owners = list(_owners(path, lock, folders)) if can_see_processes() else ["unknown"]
    if not owners and time.time() - lock.st_mtime >= _OLD_SECONDS and _is_same(path, lock):
        os.unlink(path)
        return None
    return owners


def _is_same(path: str, lock: os.stat_result) -> bool:
    try:
        now = os.lstat(path)
    except FileNotFoundError:
        return False
    return (now.st_ino, now.st_mtime_ns) == (lock.st_ino, lock.st_mtime_ns)


def _owners(path: str, lock: os.stat_result, folders: tuple[str, ...]) -> Iterator[str]:
    """Yield a description of each process that could have made the lock."""
    for pid in list_pids():
        if pid == os.getpid():
            continue
        name = read_name(pid)
        try:
            is_owner = path in open_files(pid) or _is_git_in(pid, name, folders)
            if folders == _ANYWHERE and is_owner:  # a process that is younger than the lock has not made it
                is_owner = age_seconds(pid) > time.time() - lock.st_mtime - 1.0
        except PermissionError:
            # The open files of another user's process are hidden; it can only have made a file of its own.
            is_owner = owner_of(pid) == lock.st_uid != os.geteuid()
        except OSError:
            continue  # it has just ended
        if is_owner:
            yield f"process {pid} ({name})"


def _is_git_in(pid: int, name: str, folders: tuple[str, ...]) -> bool:
    if name != "git" and not name.startswith("git-"):
        return False
    cwd = working_folder(pid)
    return any(is_at_or_below(cwd, folder) for folder in folders)
