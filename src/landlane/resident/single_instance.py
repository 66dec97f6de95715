"""Where a resident lives: the lock that makes it the only one, the socket it listens at, its code."""

from __future__ import annotations

import fcntl
import os
import socket
import time

from landlane.errors import StoreError
from landlane.files import write_whole
from landlane.ids import digest
from landlane.resident.messages import LONGEST_PATH, POINTER, SOCKET, is_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_LOCK = "resident.lock"
_STARTING = "resident.start"  # there while one begins
_STARTING_SECONDS = 2.0  # after that it may have been killed on the way
_BACKLOG = 256
_TRIES = 10
_PAUSE_SECONDS = 0.02


class ResidentLock:
    """The right to be the resident of a state folder: a lock that ends with the process, however it ends."""

    def __init__(self, folder: str, file: int) -> None:
        self.folder = folder
        self.file = file
        self.path = ""
        self._bound = (0, 0)

    @classmethod
    def take(cls, folder: str) -> Self | None:
        """Become the resident; nothing when there is one."""
        path = os.path.join(folder, _LOCK)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _locks(file):
            os.close(file)
            return None
        post = cls(folder, file)
        _remove(os.path.join(folder, _STARTING))
        if not post._is_locked_here():  # somebody removed the file meanwhile: ours means nothing
            os.close(file)
            return None
        return post

    def listen(self) -> socket.socket:
        """Bind the socket. Only the holder of the lock does, so what lies there is nobody's."""
        self.path = _socket_path(self.folder)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        scratch = f"{os.path.dirname(self.path)}/.{os.getpid() % 10**7}"
        _remove(scratch)
        before = os.umask(0o177)
        try:
            listener.bind(scratch)
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
        os.rename(scratch, self.path)  # whoever connects finds the old one or the new one
        self._bound = _identity(self.path)
        _point_to(self.folder, self.path)
        return listener

    def holds(self) -> bool:
        """Whether lock and socket are still where callers look for them."""
        return self._is_locked_here() and _identity(self.path) == self._bound

    def _is_locked_here(self) -> bool:
        found = os.fstat(self.file)
        return _identity(os.path.join(self.folder, _LOCK)) == (found.st_dev, found.st_ino)

    def leave(self) -> None:
        """Take the socket away, if it is still ours; who comes now finds nobody."""
        if self._is_locked_here() and _identity(self.path) == self._bound:
            _remove(self.path)


def _locks(file: int) -> bool:
    """Lock a file, unless somebody keeps it. Whoever only looks, in `is_taken`, has it for a moment."""
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
    """Whether a resident lives there, or begins to."""
    try:
        file = os.open(os.path.join(folder, _LOCK), os.O_RDONLY | os.O_CLOEXEC)
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
    """Whether the caller is the one to start a resident: of many that miss one at once, one is enough."""
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
    """What changes when the package on the disk does."""
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


def _socket_path(folder: str) -> str:
    """In the state folder; where that is too long for the kernel, in a folder of this user's alone."""
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


def _point_to(folder: str, path: str) -> None:
    """Leave word where the socket is, if it is not where one would look."""
    pointer = os.path.join(folder, POINTER)
    if path == os.path.join(folder, SOCKET):
        _remove(pointer)
        return
    write_whole(pointer, path + "\n")


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
