"""Which processes have a file open or work in a folder, read from /proc."""

from __future__ import annotations

import os

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_FIRST_NAMESPACE = "pid:[4026531836]"  # the machine's own; any other does not show all processes


@value
class FileUsers:
    """Who uses what was asked for. `hidden` are gits that cannot be looked into."""

    openers: dict[str, tuple[int, ...]]
    gits: tuple[int, ...]
    hidden: tuple[int, ...]


def find_file_users(paths: Collection[str], folders: Sequence[str]) -> FileUsers:
    """Who has one of these paths open, and which gits work in one of these folders, or on one as GIT_DIR."""
    openers: dict[str, tuple[int, ...]] = {}
    gits: list[int] = []
    hidden: list[int] = []
    for pid in _pids():
        is_git = _name_of(pid).startswith("git")
        try:
            opened = _opened(pid)
            cwd = os.readlink(f"/proc/{pid}/cwd")
            git_dirs = _git_dirs(pid, cwd) if is_git else []
        except PermissionError:
            if is_git:
                hidden.append(pid)
            continue
        except OSError:
            continue  # it has ended
        for path in opened & set(paths):
            openers[path] = (*openers.get(path, ()), pid)
        if is_git and any(_is_below(place, folder) for place in (cwd, *git_dirs) for folder in folders):
            gits.append(pid)
    return FileUsers(openers=openers, gits=tuple(gits), hidden=tuple(hidden))


def can_see_processes() -> bool:
    """Whether there is a /proc that tells of processes."""
    return os.path.isdir("/proc/self/fd")


def can_see_all_processes() -> bool:
    """Whether no process of the machine is hidden from us, as they are inside of a container."""
    try:
        return os.readlink("/proc/self/ns/pid") == _FIRST_NAMESPACE
    except OSError:
        return False


def working_folder(pid: int) -> str:
    """The folder that a process stands in; empty when that cannot be seen."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def processes_in(folder: str, *, include_own: bool = False) -> list[tuple[int, str]]:
    """Return pid and name of the processes whose working folder or an open file is inside of a folder.

    This process and its parents are left out, unless `include_own` is set.
    """
    skipped = set[int]() if include_own else _own_line()
    return [(pid, _name_of(pid) or "?") for pid in _pids() if pid not in skipped and _lives_in(pid, folder)]


def describe_process(pid: int) -> str:
    """A process in words."""
    return f"process {pid} ({_name_of(pid) or 'gone'})"


def _pids() -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit())


def _name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _opened(pid: int) -> set[str]:
    found: set[str] = set()
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            found.add(os.readlink(f"{folder}/{name}"))
        except FileNotFoundError:
            continue  # closed meanwhile
    return found


def _git_dirs(pid: int, cwd: str) -> list[str]:
    with open(f"/proc/{pid}/environ", "rb") as file:
        variables = file.read().split(b"\0")
    named = [text.partition(b"=") for text in variables if text.startswith((b"GIT_DIR=", b"GIT_WORK_TREE="))]
    return [os.path.join(cwd, text.decode("utf-8", "surrogateescape")) for _, _, text in named]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _own_line() -> set[int]:
    """Return the pids of this process and its parents."""
    line, pid = set[int](), os.getpid()
    while pid > 1:
        line.add(pid)
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return line


def _lives_in(pid: int, folder: str) -> bool:
    try:
        if _is_below(os.readlink(f"/proc/{pid}/cwd"), folder):
            return True
        return any(_is_below(_target(pid, number), folder) for number in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False  # it has ended, or belongs to another user


def _target(pid: int, number: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError:
        return ""
