"""Which processes live in a folder: those that stand in it, or have something in it open."""

from __future__ import annotations

import os


def processes_in(folder: str, *, with_own_line: bool = False) -> list[tuple[int, str]]:
    """The processes, other than this one and its parents, whose working folder or open file is inside."""
    passed_over = set[int]() if with_own_line else _own_line()
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    pids = [name for name in names if name.isdecimal() and int(name) not in passed_over]
    return [(int(pid), _name_of(pid)) for pid in pids if _lives_in(pid, folder)]


def _own_line() -> set[int]:
    line, pid = set[int](), os.getpid()
    while pid > 1:
        line.add(pid)
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return line


def _lives_in(pid: str, folder: str) -> bool:
    try:
        if _is_in(os.readlink(f"/proc/{pid}/cwd"), folder):
            return True
        return any(_is_in(_target(pid, number), folder) for number in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False  # gone meanwhile, or another user's


def _target(pid: str, number: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError:
        return ""


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _name_of(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "?"
