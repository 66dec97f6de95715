"""Sizes and free space; evict caches when the disk is short."""

from __future__ import annotations

import os
import shutil
import stat

from landlane.git.remove_checkout import remove_tree
from landlane.git.run import run_git
from landlane.platform.file_users import processes_in
from landlane.workspaces import records as operations
from landlane.workspaces.model import OPEN, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.repository import Repository


def size_of(path: str) -> int:
    """How much room a folder takes; links are not followed."""
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
            continue  # removed meanwhile, or not ours to read
    return total


def free_bytes(folder: str) -> int:
    """How much room is left where a folder is, or will be."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free


def evict_caches(repo: Repository) -> list[tuple[str, int]]:
    """While less than the floor is free, remove declared caches, least recently used first; tells which.

    Only what the settings call a cache goes, and only from workspaces whose session has ended and that no
    process lives in.
    """
    floor = repo.settings.workspace.disk_floor_bytes
    if not floor or not repo.settings.workspace.caches:
        return []
    evicted: list[tuple[str, int]] = []
    for _, path in sorted(_caches(repo)):
        if shutil.disk_usage(os.path.dirname(path)).free >= floor:
            break
        size = size_of(path)
        remove_tree(path)
        evicted.append((path, size))
    return evicted


def _caches(repo: Repository) -> Iterator[tuple[int, str]]:
    """The caches that may go, each with the instant when it was last used."""
    for one in operations.list_workspaces(repo):
        is_here = one.state == OPEN and operations.is_here(repo, one, repo.common_dir)
        if not is_here or operations.is_held(repo, one) or processes_in(one.path):
            continue
        for name in repo.settings.workspace.caches:
            path = os.path.normpath(os.path.join(one.path, name))
            if not _is_inside(one.path, path) or not os.path.isdir(path):
                continue
            if not _is_ignored(one, path):
                continue  # git knows it: whatever the settings say, it is no cache
            yield _last_used(path), path


def _is_inside(root: str, path: str) -> bool:
    """Whether a path lies in a workspace itself: through no link at any depth, and not in a `.git`."""
    inside = os.path.relpath(path, root)
    parts = inside.split("/")
    is_below = inside != "." and ".." not in parts and ".git" not in parts
    return is_below and os.path.realpath(path) == os.path.join(os.path.realpath(root), inside)


def _is_ignored(one: Workspace, path: str) -> bool:
    """Whether git has nothing to do with anything in a folder: nothing tracked, nothing that it would add."""
    inside = os.path.relpath(path, one.path)
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", f":(top,literal){inside}")
    found = run_git("-c", "core.fsmonitor=false", *words, cwd=one.path)
    return not found.exit_code and not found.stdout


def _last_used(path: str) -> int:
    """When anything directly in it was last written or read."""
    newest = os.lstat(path).st_mtime_ns
    for entry in os.scandir(path):
        found = entry.stat(follow_symlinks=False)
        newest = max(newest, found.st_mtime_ns, found.st_atime_ns if stat.S_ISREG(found.st_mode) else 0)
    return newest
