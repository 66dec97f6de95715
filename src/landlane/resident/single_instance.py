"""One resident for each state folder: its lock, its socket, and the version of its code."""

from __future__ import annotations

import fcntl
import os
import socket
import time

from landlane.errors import StoreError
from landlane.files import write_atomically
from landlane.ids import digest
from landlane.resident.messages import LONGEST_PATH, POINTER, SOCKET, is_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_LOCK = "resident.lock"
_STARTING = "resident.start"  # exists while a resident starts
_STARTING_SECONDS = 2.0  # after that it may have been killed
_BACKLOG = 256
_TRIES = 10
_PAUSE_SECONDS = 0.02


class ResidentLock:
    """The lock that makes a process the resident of a state folder; it ends with the process."""

    def __init__(self, folder: str, file: int) -> None:
        self.folder = folder
        self.file = file
        self.path = ""
        self._bound = (0, 0)

    @classmethod
    def take(cls, folder: str) -> Self | None:
        """Take the lock; return None when there is a resident."""
        path = os.path.join(folder, _LOCK)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        lock = cls(folder, file)
        if _try_lock(file):
            _remove(os.path.join(folder, _STARTING))
            if lock._is_in_place():  # else the file was removed meanwhile, and the lock means nothing
                return lock
        os.close(file)
        return None

    def listen(self) -> socket.socket:
        """Bind the socket. Only the holder of the lock does, so an existing one can be replaced."""
        self.path = _make_socket_path(self.folder)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        temporary = f"{os.path.dirname(self.path)}/.{os.getpid() % 10**7}"
        _remove(temporary)
        before = os.umask(0o177)
        try:
            listener.bind(temporary)
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
        os.rename(temporary, self.path)  # callers find the old socket or the new one
        self._bound = _identity(self.path)
        pointer = os.path.join(self.folder, POINTER)
        if self.path == os.path.join(self.folder, SOCKET):
            _remove(pointer)
        else:
            write_atomically(pointer, self.path + "\n")
        return listener

    def is_valid(self) -> bool:
        """Return whether lock and socket are still where callers look for them."""
        return self._is_in_place() and _identity(self.path) == self._bound

    def _is_in_place(self) -> bool:
        found = os.fstat(self.file)
        return _identity(os.path.join(self.folder, _LOCK)) == (found.st_dev, found.st_ino)

    def remove_socket(self) -> None:
        """Remove the socket, if it is still ours."""
        if self.is_valid():
            _remove(self.path)


def _try_lock(file: int) -> bool:
    """Lock a file; `is_running` may hold the lock for a moment, so try several times."""
    for tries in range(_TRIES):
        if tries:
            time.sleep(_PAUSE_SECONDS)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        return True
    return False


def is_running(folder: str) -> bool:
    """Return whether a resident serves a state folder, or starts to."""
    return is_locked(os.path.join(folder, _LOCK))


def is_locked(path: str) -> bool:
    """Return whether a process holds the lock of this file; a file that is missing is not locked."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def may_start(folder: str) -> bool:
    """Return whether the caller should start a resident; of many callers at once, one gets True."""
    path = os.path.join(folder, _STARTING)
    try:
        if time.time() - os.stat(path).st_mtime < _STARTING_SECONDS:
            return False
        os.utime(path)
    except FileNotFoundError:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return False
    return True


def code_stamp() -> int:
    """Return a number that changes when a file of the package changes."""
    found: list[tuple[str, int, int]] = []
    folders = [os.path.dirname(os.path.dirname(__file__))]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.is_dir():
                folders += [entry.path] if entry.name != "__pycache__" else []
            elif entry.name.endswith((".py", ".sql")):
                known = entry.stat()
                found.append((entry.path, known.st_mtime_ns, known.st_size))
    return hash(tuple(sorted(found)))


def _make_socket_path(folder: str) -> str:
    """Return a path in the state folder or, where that is too long for the kernel, in a private folder."""
    path = os.path.join(folder, SOCKET)
    if len(os.fsencode(path)) <= LONGEST_PATH:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return path
    name = f"{digest(os.path.realpath(folder))[:20]}.sock"
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base and is_private(base) and len(os.fsencode(f"{base}/landlane/{name}")) <= LONGEST_PATH:
        private = f"{base}/landlane"
    else:
        private = f"/tmp/landlane-{os.getuid()}"  # noqa: S108 - its owner and mode are checked below
    try:
        os.mkdir(private, 0o700)
    except FileExistsError:
        pass
    if not is_private(private):
        raise StoreError(
            f"{private} is not a folder that only this user can use",
            code="RESIDENT_PLACE",
            hint="remove it, or set XDG_RUNTIME_DIR to a private folder",
        )
    return f"{private}/{name}"


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
