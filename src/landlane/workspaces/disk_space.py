"""Measure folders and free space; remove caches when the disk is nearly full."""

from __future__ import annotations

import os
import shutil
import stat

from landlane.git.remove_checkout import remove_tree
from landlane.git.run import run_git
from landlane.platform.file_users import processes_in
from landlane.workspaces.model import OPEN, Workspace
from landlane.workspaces.records import is_held, list_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.repository import Repository


def size_of(path: str) -> int:
    """Return how many bytes a folder takes on disk; links are not followed."""
    total = 0
    folders = [path]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue  # removed in the meantime, or not readable
    return total


def free_bytes(folder: str) -> int:
    """Return the free space where a folder is or will be."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free


def evict_caches(repo: Repository) -> list[tuple[str, int]]:
    """Remove caches, least recently used first, until enough space is free; return each with its size.

    Only folders that the settings declare as caches are removed, and only from workspaces whose session has
    ended and in which no process runs.
    """
    floor = repo.settings.workspace.disk_floor_bytes
    if not floor or not repo.settings.workspace.caches:
        return []
    evicted: list[tuple[str, int]] = []
    for _, path in sorted(_list_caches(repo)):
        if shutil.disk_usage(os.path.dirname(path)).free >= floor:
            break
        size = size_of(path)
        remove_tree(path)
        evicted.append((path, size))
    return evicted


def _list_caches(repo: Repository) -> Iterator[tuple[int, str]]:
    """Yield the caches that may be removed, each with the time of its last use."""
    for one in list_local(repo, (OPEN,)):
        if is_held(repo, one) or processes_in(one.path):
            continue
        for name in repo.settings.workspace.caches:
            path = os.path.normpath(os.path.join(one.path, name))
            # A folder with tracked or addable files is not a cache, whatever the settings say.
            if _is_inside(one.path, path) and os.path.isdir(path) and _is_ignored(one, path):
                yield _last_used(path), path


def _is_inside(root: str, path: str) -> bool:
    """Return whether a path is in a workspace itself: not behind any link, and not in a `.git`."""
    inside = os.path.relpath(path, root)
    parts = inside.split("/")
    is_below = inside != "." and ".." not in parts and ".git" not in parts
    return is_below and os.path.realpath(path) == os.path.join(os.path.realpath(root), inside)


def _is_ignored(one: Workspace, path: str) -> bool:
    """Return whether git ignores everything in a folder: nothing is tracked, nothing would be added."""
    inside = os.path.relpath(path, one.path)
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", f":(top,literal){inside}")
    found = run_git("-c", "core.fsmonitor=false", *words, cwd=one.path)
    return not found.exit_code and not found.stdout


def _last_used(path: str) -> int:
    """Return when anything directly in a folder was last written or read."""
    newest = os.lstat(path).st_mtime_ns
    for entry in os.scandir(path):
        found = entry.stat(follow_symlinks=False)
        newest = max(newest, found.st_mtime_ns, found.st_atime_ns if stat.S_ISREG(found.st_mode) else 0)
    return newest
