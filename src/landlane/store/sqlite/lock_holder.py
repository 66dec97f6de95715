"""Find the process that locks a SQLite store, from the kernel's list of locks.

`fcntl` cannot be used: it needs the file open, and closing it would drop this process's own locks.
"""

from __future__ import annotations

import os

from landlane.values import value

_LOCKS = "/proc/locks"
_INTERPRETERS = ("python", "node", "perl", "ruby", "bash", "sh")
_WRITE_BYTE = 120  # SQLite's write lock is on this byte of the -shm file


@value
class LockHolder:
    """The process that holds the write lock."""

    pid: int
    program: str
    is_stopped: bool

    def __str__(self) -> str:
        return f"process {self.pid} ({self.program}){', which is stopped' if self.is_stopped else ''}"


def find_lock_holder(path: str) -> LockHolder | None:
    """Return the process that holds the write lock of a store; None if the system does not say."""
    files = {name: _stat(path + ending) for name, ending in (("FLOCK", ".lock"), ("POSIX", "-shm"))}
    try:
        with open(_LOCKS, encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return None
    for words in lines:
        # 1: POSIX  ADVISORY  WRITE 20289 fe:00:2149988 120 120       (a waiter has -> before its kind)
        known = files.get(words[1]) if len(words) == 8 and words[3] == "WRITE" else None
        if known is None or str(known.st_ino) != words[5].rpartition(":")[2]:
            continue
        if words[1] == "POSIX" and not int(words[6]) <= _WRITE_BYTE <= _last(words[7]):
            continue
        pid = int(words[4])
        if pid > 0 and pid != os.getpid() and _has_open(pid, known):
            return LockHolder(pid=pid, program=_program(pid), is_stopped=_is_stopped(pid))
    return None


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _has_open(pid: int, known: os.stat_result) -> bool:
    """Return whether a process has this file open; another disk may have the same inode number."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False  # of another user, or gone: the hint must not suggest to end an unknown process
    opened = (_stat(f"{folder}/{name}") for name in names)
    return any(stat is not None and os.path.samestat(stat, known) for stat in opened)


def _last(word: str) -> int:
    return _WRITE_BYTE if word == "EOF" else int(word)


def _program(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(400).decode("utf-8", "replace").split("\0")
    except OSError:
        return "gone"
    command = _name(words)[:80]
    return "".join(letter if letter.isprintable() else "?" for letter in command) or "unknown"


def _name(words: list[str]) -> str:
    """Return what a command line runs: the script or module of an interpreter, else the program."""
    name = os.path.basename(words[0])
    for word in words[1:] if name.startswith(_INTERPRETERS) else ():
        if word == "-c":
            break
        if word and not word.startswith("-"):
            return os.path.basename(word)
    return name


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in (b"T", b"t")
    except OSError:
        return False
