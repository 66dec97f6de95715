"""Locks of git's own: waiting for whoever has one, and removing one that a killed git left behind.

While a hook runs, git need not have its lock open. So the owner is looked for in two ways: who has the file
open, and which git is at work where the lock counts.
"""

from __future__ import annotations

import os
import time

from landlane.errors import RepositoryError
from landlane.git.orphaned_worktrees import names_in, place_for
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from landlane.git.discovery import Checkout


_OLD_SECONDS = 3.0  # git may have taken it a moment ago, and be visible only in the next
_LIMIT_SECONDS = 10.0
_SLEEP_SECONDS = 0.05
_ANYWHERE = ("/",)  # a branch can be written by every git on this machine, wherever it stands


def wait_for_index(here: Checkout) -> None:
    """Go on when nobody has locked the index; for those who hold the lock on git.

    Raises:
        RepositoryError: somebody has, or nobody can tell.
    """
    _wait_for(os.path.join(here.git_dir, "index.lock"), _folders_of(here))


def wait_for_locks(here: Checkout) -> None:
    """Go on when nobody has locked anything that a commit must write; for those who hold the lock on git.

    Raises:
        RepositoryError: somebody has, or nobody can tell.
    """
    wait_for_index(here)
    _wait_for(os.path.join(here.git_dir, "HEAD.lock"), _folders_of(here))
    try:
        with open(os.path.join(here.git_dir, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
            ref = file.readline().rstrip("\n").removeprefix("ref: ")
    except OSError:
        return
    if ref.startswith("refs/"):
        _wait_for(os.path.join(here.common_dir, f"{ref}.lock"), _ANYWHERE)


def wait_for_refs(home: Checkout, refs: Sequence[str], worktrees: Sequence[str]) -> None:
    """Go on when nobody has locked these refs, those of ours, or all of them at once.

    Raises:
        RepositoryError: somebody has, or nobody can tell.
    """
    folders = (*_folders_of(home), *(os.path.realpath(folder) for folder in worktrees))
    for name in ("packed-refs", *refs):
        _wait_for(os.path.join(home.common_dir, f"{name}.lock"), folders)
    for folder, _, names in os.walk(os.path.join(home.common_dir, "refs", "landlane")):
        for name in names:
            if name.endswith(".lock"):
                _wait_for(os.path.join(folder, name), folders)


def remove_stale_lock(path: str, *folders: str) -> None:
    """Remove a lock that a killed process left behind, if no git is at work in these folders."""
    folder, name = os.path.split(path)
    real = os.path.join(os.path.realpath(folder), name)  # as it is shown where it is open
    try:
        if time.time() - os.lstat(real).st_mtime >= _OLD_SECONDS:
            _owners_or_removed(real, tuple(os.path.realpath(one) for one in folders))
    except OSError:
        return  # it is gone by itself, or not ours to remove


def _folders_of(here: Checkout) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder) for folder in (here.root, here.git_dir))


def _wait_for(path: str, folders: tuple[str, ...]) -> None:
    give_up_at = time.monotonic() + _LIMIT_SECONDS
    while (owners := _owners_or_removed(path, folders)) is not None:
        if time.monotonic() >= give_up_at:
            raise RepositoryError(
                f"{os.path.basename(path)} is held by {', '.join(owners[:3]) or 'a git that just ended'}",
                code="GIT_LOCKED",
                hint="wait until it has ended, or end it; then try again",
                holder=owners[0] if owners else "",
            )
        time.sleep(_SLEEP_SECONDS)


def _owners_or_removed(path: str, folders: tuple[str, ...]) -> list[str] | None:
    """Who may have the lock; nothing when there is none any more, or it was left behind and is removed."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    owners = list(_owners(path, found, folders)) if os.path.isdir("/proc/self") else ["somebody"]
    if not owners and time.time() - found.st_mtime >= _OLD_SECONDS and _is_same(path, found):
        os.unlink(path)
        return None
    return owners


def _is_same(path: str, found: os.stat_result) -> bool:
    try:
        now = os.lstat(path)
    except FileNotFoundError:
        return False
    return (now.st_ino, now.st_mtime_ns) == (found.st_ino, found.st_mtime_ns)


def _owners(path: str, found: os.stat_result, folders: tuple[str, ...]) -> Iterator[str]:
    """Processes that could have made the lock, in words."""
    for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
        if pid == os.getpid():
            continue
        name = "of another user"
        try:
            name = _name_of(pid)
            is_owner = _is_git_in(pid, name, folders) or _has_open(pid, path)
            if folders == _ANYWHERE and is_owner:
                is_owner = _age_of(pid) > time.time() - found.st_mtime - 1.0
        except PermissionError:
            # Of another user's process we see the name at most; it can only have made a file of its own.
            is_owner = _may_be_theirs(pid, found)
        except OSError:
            continue  # it has just ended
        if is_owner:
            yield f"process {pid} ({name})"


def _name_of(pid: int) -> str:
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def _is_git_in(pid: int, name: str, folders: tuple[str, ...]) -> bool:
    if name != "git" and not name.startswith("git-"):
        return False
    cwd = os.readlink(f"/proc/{pid}/cwd")
    return any(cwd == folder or cwd.startswith(folder.rstrip("/") + "/") for folder in folders)


def _age_of(pid: int) -> float:
    """For how many seconds a process has been there: one that is younger than a lock has not made it."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        raw = file.read()
    started = int(raw[raw.rindex(b")") + 2 :].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def _has_open(pid: int, path: str) -> bool:
    folder = f"/proc/{pid}/fd"
    for number in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{number}") == path:
                return True
        except FileNotFoundError:
            continue
    return False


def _may_be_theirs(pid: int, found: os.stat_result) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == found.st_uid != os.geteuid()
    except OSError:
        return False


@value
class LockFile:
    """A lock file of git: which one it is tells its inode and time."""

    path: str
    inode: int
    changed_at: float


def find_lock_files(common_dir: str) -> list[LockFile]:
    """Every lock file of git in a repository: of the index, the settings, HEAD and all refs."""
    found: list[LockFile] = []
    for path in _lock_paths(common_dir):
        try:
            at = os.lstat(path)
        except OSError:
            continue  # let go of meanwhile
        found.append(LockFile(path=path, inode=at.st_ino, changed_at=at.st_mtime))
    return found


def _lock_paths(common_dir: str) -> Iterator[str]:
    worktrees = os.path.join(common_dir, "worktrees")
    folders = [common_dir, os.path.join(common_dir, "objects", "info")]
    folders += [os.path.join(worktrees, name) for name in names_in(worktrees)]
    for folder in folders:
        yield from (os.path.join(folder, name) for name in names_in(folder) if name.endswith(".lock"))
    for base in [common_dir, *folders[2:]]:
        for folder, _, names in os.walk(os.path.join(base, "refs")):
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".lock"))


def set_lock_aside(common_dir: str, lock: LockFile) -> str:
    """Take a lock file away, if it is still the same one; tells where it is kept."""
    try:
        at = os.lstat(lock.path)
    except OSError:
        return ""
    if (at.st_ino, at.st_mtime) != (lock.inode, lock.changed_at):
        return ""
    kept = place_for(common_dir, os.path.relpath(lock.path, common_dir))
    os.rename(lock.path, kept)
    return kept
