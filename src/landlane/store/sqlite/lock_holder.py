"""Who keeps a SQLite store locked: read from the kernel's own list, which touches no file of the store.

Asking with `fcntl` would need the file opened; closing it again would drop this process's own locks on it.
"""

from __future__ import annotations

import os

from landlane.values import value

_LOCKS = "/proc/locks"
_WRITE_BYTE = 120  # of the -shm file: SQLite's lock for the one writer


@value
class LockHolder:
    """A process that has the right to write."""

    pid: int
    program: str
    is_stopped: bool

    def __str__(self) -> str:
        return f"process {self.pid} ({self.program}){', which is stopped' if self.is_stopped else ''}"


def lock_holder(path: str) -> LockHolder | None:
    """The process that keeps others from writing to the store; None where the system does not tell."""
    files = {name: _stat(path + ending) for name, ending in (("FLOCK", ".lock"), ("POSIX", "-shm"))}
    try:
        with open(_LOCKS, encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return None
    for words in lines:
        # 1: POSIX  ADVISORY  WRITE 20289 fe:00:2149988 120 120       (a waiting one has -> before its kind)
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
    """Whether a process has this very file open: the same number on another disk is another file."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False  # another user's, or gone: nobody is told to end what we cannot see
    return any(
        (found.st_ino, found.st_dev) == (known.st_ino, known.st_dev)
        for name in names
        if (found := _stat(f"{folder}/{name}")) is not None
    )


def _last(word: str) -> int:
    return _WRITE_BYTE if word == "EOF" else int(word)


def _program(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(400).decode("utf-8", "replace").split("\0")
    except OSError:
        return "gone"
    return "".join(one if one.isprintable() else "?" for one in " ".join(words).strip())[:80] or "unknown"


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in (b"T", b"t")
    except OSError:
        return False
