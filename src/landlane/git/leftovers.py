"""Find lock files that killed git processes left, and worktree entries without a folder; move them aside."""

from __future__ import annotations

import os
import time

from landlane.files import is_at_or_below
from landlane.git.run import git_output, identity_variables, resolve_revision, run_in, try_git_output
from landlane.platform.process import list_mounts
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.git.discovery import Checkout


_KEPT = "leftovers"
_RESCUES = "refs/landlane/rescue/"
# Where removable drives are mounted.
_DRIVES = ("/mnt", "/media", "/run/media", "/Volumes", "/net", "/autofs", "/misc")


@value
class OrphanedWorktree:
    """A worktree entry whose folder is gone; `why_kept` says why it must stay."""

    name: str
    admin: str
    root: str
    changed_at: float
    why_kept: str = ""


def _list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _aside_path(common_dir: str, name: str) -> str:
    folder = os.path.join(common_dir, "landlane", _KEPT)
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{name.replace('/', '%')}.{time.time_ns()}")


def find_orphans(home: Checkout) -> list[OrphanedWorktree]:
    """Return the worktree entries whose folder is gone."""
    folder = os.path.join(home.common_dir, "worktrees")
    found: list[OrphanedWorktree] = []
    for name in _list_names(folder):
        admin = os.path.join(folder, name)
        try:
            with open(os.path.join(admin, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
                marker = os.path.join(admin, file.readline().rstrip("\n"))
            at = os.stat(os.path.join(admin, "HEAD")).st_mtime
        except OSError:
            continue  # still being created
        if os.path.lexists(marker):
            continue
        why = "it is locked" if os.path.exists(os.path.join(admin, "locked")) else ""
        why = why or ("its drive may be away" if _is_on_missing_drive(marker) else "")
        found.append(
            OrphanedWorktree(
                name=name, admin=admin, root=os.path.dirname(marker), changed_at=at, why_kept=why
            )
        )
    return found


def _is_on_missing_drive(path: str) -> bool:
    """Return whether a path is on a drive that is not mounted now."""
    mounted = [point for point in list_mounts() if is_at_or_below(path, point)]
    if any(point != "/" and any(is_at_or_below(point, drive) for drive in _DRIVES) for point in mounted):
        return False
    if any(is_at_or_below(path, drive) for drive in _DRIVES):
        return True
    planned = [point for point in _planned_mounts() if point != "/" and is_at_or_below(path, point)]
    return any(point not in mounted for point in planned)


def _planned_mounts() -> list[str]:
    try:
        with open("/etc/fstab", encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.split() for line in file if not line.lstrip().startswith("#")]
    except OSError:
        return []
    return [words[1] for words in lines if len(words) > 1 and words[1].startswith("/")]


def set_orphan_aside(home: Checkout, orphan: OrphanedWorktree) -> tuple[str, str]:
    """Save what only this entry leads to, and move it aside; return the ref that keeps it, and the new path.

    Raises:
        RepositoryError: that cannot be saved; the entry stays.
    """
    commit = _last_work(home, orphan)
    ref = ""
    if commit:
        ref = _free_ref(home, f"{_RESCUES}orphan-{_as_ref(orphan.name)}", commit)
        git_output(home, "update-ref", "-m", f"worktree {orphan.name} is gone", ref, commit)
    kept = _aside_path(home.common_dir, f"worktree-{orphan.name}")
    os.rename(orphan.admin, kept)
    return ref, kept


def _last_work(home: Checkout, orphan: OrphanedWorktree) -> str:
    """Return the commit that would be lost with an entry: of what was staged there, or a detached HEAD."""
    head = resolve_revision(home, f"worktrees/{orphan.name}/HEAD^{{commit}}")
    index = os.path.join(orphan.admin, "index")
    if os.path.exists(index):
        tree = run_in(home, "write-tree", variables={"GIT_INDEX_FILE": index})
        staged = "" if tree.exit_code else tree.stdout.strip()
        if staged and staged != resolve_revision(home, f"{head or 'HEAD'}^{{tree}}"):
            parent = ("-p", head) if head else ()
            identity = identity_variables("landlane")
            message = f"What was staged in the worktree {orphan.name}, whose folder is gone"
            made = run_in(home, "commit-tree", staged, *parent, "-m", message, variables=identity)
            if not made.exit_code:
                return made.stdout.strip()
    is_kept = not head or bool(
        try_git_output(home, "for-each-ref", "--count=1", f"--contains={head}", "refs")
    )
    return "" if is_kept else head


def _as_ref(name: str) -> str:
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name.strip("-") if plain else name.encode("utf-8", "surrogateescape").hex()


def _free_ref(home: Checkout, ref: str, commit: str) -> str:
    """Return the ref, or another name where a different commit is kept under it already."""
    there = resolve_revision(home, ref)
    return ref if there in ("", commit) else f"{ref}-{commit[:10]}"


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
    folders += [os.path.join(worktrees, name) for name in _list_names(worktrees)]
    for folder in folders:
        yield from (os.path.join(folder, name) for name in _list_names(folder) if name.endswith(".lock"))
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
    kept = _aside_path(common_dir, os.path.relpath(lock.path, common_dir))
    os.rename(lock.path, kept)
    return kept
