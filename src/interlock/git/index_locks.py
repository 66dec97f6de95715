"""A lock on the index that git left behind: waiting for its owner, or removing it once nobody can be that.

While a hook runs, git need not have its lock open. So the owner is looked for in two ways: who has the file
open, and which git is at work in this checkout.
"""

from __future__ import annotations

import os
import time

from interlock.errors import RepositoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.git.layout import Checkout

_OLD_SECONDS = 3.0  # git may have taken it a moment ago, and be visible only in the next
_LIMIT_SECONDS = 10.0
_SLEEP_SECONDS = 0.05


def wait_for_index(here: Checkout) -> None:
    """Go on when nobody has the index locked; for those who hold the lock on git.

    Raises:
        RepositoryError: somebody does, or nobody can tell.
    """
    path = os.path.join(here.git_dir, "index.lock")
    give_up_at = time.monotonic() + _LIMIT_SECONDS
    while True:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return
        owners = list(_owners(here, path, found)) if os.path.isdir("/proc/self") else ["somebody"]
        age = time.time() - found.st_mtime
        if not owners and age >= _OLD_SECONDS and _is_same(path, found):
            os.unlink(path)
            return
        if time.monotonic() >= give_up_at:
            raise RepositoryError(
                f"the index is locked by {', '.join(owners) or 'a git that just ended'}",
                code="INDEX_LOCKED",
                hint="wait until it has ended, or end it; then try again",
                holder=owners[0] if owners else "",
            )
        time.sleep(_SLEEP_SECONDS)


def _is_same(path: str, found: os.stat_result) -> bool:
    try:
        now = os.lstat(path)
    except FileNotFoundError:
        return False
    return (now.st_ino, now.st_mtime_ns) == (found.st_ino, found.st_mtime_ns)


def _owners(here: Checkout, path: str, found: os.stat_result) -> Iterator[str]:
    """Processes that could have made the lock, in words."""
    roots = tuple(os.path.realpath(folder) for folder in (here.root, here.git_dir))
    for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
        if pid == os.getpid():
            continue
        name = "of another user"
        try:
            name = _name_of(pid)
            is_owner = _is_git_in(pid, name, roots) or _has_open(pid, path)
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


def _is_git_in(pid: int, name: str, roots: tuple[str, ...]) -> bool:
    if name != "git" and not name.startswith("git-"):
        return False
    cwd = os.readlink(f"/proc/{pid}/cwd")
    return any(cwd == root or cwd.startswith(root + "/") for root in roots)


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
