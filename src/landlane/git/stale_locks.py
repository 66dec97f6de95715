"""git's own lock files: wait for them, and remove those that a killed git left behind.

While a hook runs, git need not have its lock open. So the owner is searched in two ways: which process has
the file open, and which git works where the lock applies.
"""

from __future__ import annotations

import os
import time

from landlane.errors import RepositoryError
from landlane.files import read_first_line
from landlane.git.orphaned_worktrees import aside_path, list_folder
from landlane.platform.proc import (
    age_seconds,
    can_see_processes,
    list_pids,
    open_files,
    owner_of,
    read_name,
    working_folder,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from landlane.git.discovery import Checkout


_OLD_SECONDS = 3.0  # a younger lock may belong to a git that is not visible yet
_LIMIT_SECONDS = 10.0
_SLEEP_SECONDS = 0.05
_ANYWHERE = ("/",)  # every git on this machine can write a branch, wherever it works


def wait_for_index(here: Checkout) -> None:
    """Wait until the index is not locked; the caller holds the lock on git.

    Raises:
        RepositoryError: it is locked for too long.
    """
    _wait_for(os.path.join(here.git_dir, "index.lock"), _folders_of(here))


def wait_for_locks(here: Checkout) -> None:
    """Wait until nothing is locked that a commit must write; the caller holds the lock on git.

    Raises:
        RepositoryError: something is locked for too long.
    """
    wait_for_index(here)
    _wait_for(os.path.join(here.git_dir, "HEAD.lock"), _folders_of(here))
    ref = read_first_line(os.path.join(here.git_dir, "HEAD")).removeprefix("ref: ")
    if ref.startswith("refs/"):
        _wait_for(os.path.join(here.common_dir, f"{ref}.lock"), _ANYWHERE)


def wait_for_refs(home: Checkout, refs: Sequence[str], worktrees: Sequence[str]) -> None:
    """Wait until these refs, our own refs and the packed refs are not locked.

    Raises:
        RepositoryError: one of them is locked for too long.
    """
    folders = (*_folders_of(home), *(os.path.realpath(folder) for folder in worktrees))
    for name in ("packed-refs", *refs):
        _wait_for(os.path.join(home.common_dir, f"{name}.lock"), folders)
    for folder, _, names in os.walk(os.path.join(home.common_dir, "refs", "landlane")):
        for name in names:
            if name.endswith(".lock"):
                _wait_for(os.path.join(folder, name), folders)


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


def _wait_for(path: str, folders: tuple[str, ...]) -> None:
    give_up_at = time.monotonic() + _LIMIT_SECONDS
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
    owners = list(_owners(path, lock, folders)) if can_see_processes() else ["somebody"]
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
    """Yield the processes that could have made the lock, in words."""
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
    return any(cwd == folder or cwd.startswith(folder.rstrip("/") + "/") for folder in folders)


@value
class LockFile:
    """A lock file of git, identified by inode and time."""

    path: str
    inode: int
    changed_at: float


def find_lock_files(common_dir: str) -> list[LockFile]:
    """Return every lock file of git in a repository: of the index, the settings, HEAD and all refs."""
    found: list[LockFile] = []
    for path in _lock_paths(common_dir):
        try:
            at = os.lstat(path)
        except OSError:
            continue  # released meanwhile
        found.append(LockFile(path=path, inode=at.st_ino, changed_at=at.st_mtime))
    return found


def _lock_paths(common_dir: str) -> Iterator[str]:
    worktrees = os.path.join(common_dir, "worktrees")
    folders = [common_dir, os.path.join(common_dir, "objects", "info")]
    folders += [os.path.join(worktrees, name) for name in list_folder(worktrees)]
    for folder in folders:
        yield from (os.path.join(folder, name) for name in list_folder(folder) if name.endswith(".lock"))
    for base in [common_dir, *folders[2:]]:
        for folder, _, names in os.walk(os.path.join(base, "refs")):
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".lock"))


def set_lock_aside(common_dir: str, lock: LockFile) -> str:
    """Move a lock file aside, if it is still the same one; return its new path."""
    try:
        at = os.lstat(lock.path)
    except OSError:
        return ""
    if (at.st_ino, at.st_mtime) != (lock.inode, lock.changed_at):
        return ""
    kept = aside_path(common_dir, os.path.relpath(lock.path, common_dir))
    os.rename(lock.path, kept)
    return kept
