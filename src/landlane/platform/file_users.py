"""Find the processes that have a file open or work in a folder."""

from __future__ import annotations

import os

from landlane.files import is_at_or_below
from landlane.platform.process import (
    list_pids,
    open_files,
    read_environment,
    read_name,
    read_process,
    working_folder,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_FIRST_NAMESPACE = "pid:[4026531836]"  # the machine's own; any other does not show all processes


@value
class FileUsers:
    """The users of files and folders. `hidden` are git processes that cannot be inspected."""

    openers: dict[str, tuple[int, ...]]
    gits: tuple[int, ...]
    hidden: tuple[int, ...]


def find_file_users(paths: Collection[str], folders: Sequence[str]) -> FileUsers:
    """Return who has these paths open, and which git processes work in or on these folders."""
    openers: dict[str, tuple[int, ...]] = {}
    gits: list[int] = []
    hidden: list[int] = []
    for pid in list_pids():
        is_git = read_name(pid).startswith("git")
        try:
            opened = open_files(pid)
        except PermissionError:
            if is_git:
                hidden.append(pid)
            continue
        except OSError:
            continue  # it has ended
        for path in opened & set(paths):
            openers[path] = (*openers.get(path, ()), pid)
        if is_git and any(is_at_or_below(used, folder) for used in _git_folders(pid) for folder in folders):
            gits.append(pid)
    return FileUsers(openers=openers, gits=tuple(gits), hidden=tuple(hidden))


def _git_folders(pid: int) -> list[str]:
    """Return the folders that a git process works in, or on."""
    cwd = working_folder(pid)
    variables = read_environment(pid)
    named = [
        text.partition(b"=")[2] for text in variables if text.startswith((b"GIT_DIR=", b"GIT_WORK_TREE="))
    ]
    return [cwd, *(os.path.join(cwd, text.decode("utf-8", "surrogateescape")) for text in named)]


def can_see_all_processes() -> bool:
    """Return whether no process of the machine is hidden, as in a container."""
    try:
        return os.readlink("/proc/self/ns/pid") == _FIRST_NAMESPACE
    except OSError:
        return False


def processes_in(folder: str, *, include_own: bool = False) -> list[tuple[int, str]]:
    """Return pid and name of the processes whose working folder or an open file is inside of a folder.

    This process and its parents are left out, unless `include_own` is set.
    """
    skipped = set[int]() if include_own else _own_and_parents()
    return [(pid, read_name(pid) or "?") for pid in list_pids() if pid not in skipped and _uses(pid, folder)]


def describe_process(pid: int) -> str:
    """Return a process in words."""
    return f"process {pid} ({read_name(pid) or 'gone'})"


def _own_and_parents() -> set[int]:
    pids, pid = set[int](), os.getpid()
    while pid > 1:
        pids.add(pid)
        found = read_process(pid)
        pid = found.parent if found else 0
    return pids


def _uses(pid: int, folder: str) -> bool:
    if is_at_or_below(working_folder(pid), folder):
        return True
    try:
        return any(is_at_or_below(path, folder) for path in open_files(pid))
    except OSError:
        return False  # it has ended, or belongs to another user
