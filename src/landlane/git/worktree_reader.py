"""Reading a working tree without passing through a link, even if folders are swapped for links meanwhile."""

from __future__ import annotations

import contextlib
import os
import stat

from landlane.errors import RepositoryError
from landlane.git.untrusted_checkout import to_bytes, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GONE = (FileNotFoundError, NotADirectoryError)


def unreadable_error(path: str, error: OSError) -> RepositoryError:
    """A file that is there and cannot be saved: nobody may go on as if it were."""
    return RepositoryError(
        f"cannot be read, so it cannot be saved: {to_bytes(path).decode('utf-8', 'backslashreplace')} "
        f"({os.strerror(error.errno or 0)})",
        code="RESCUE_UNREADABLE",
        hint="make it readable, or remove it, and try again",
    )


def default_modes() -> tuple[int, int, int]:
    """The permissions of a folder, a program and a file that are made here with no special wish."""
    mask = 0o022
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as file:
        mask = next((int(line.split()[1], 8) for line in file if line.startswith("Umask:")), mask)
    return 0o777 & ~mask, 0o777 & ~mask, 0o666 & ~mask


class TreeReader:
    """Opens what is below a folder step by step; the last folder stays open, since paths come sorted."""

    def __init__(self, root: str) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._parent = b""
        self._handle = -1

    def __enter__(self) -> TreeReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        os.close(self._root)

    def _leave(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def _enter(self, parent: bytes) -> int:
        """A handle of a folder below the root; the caller must not close it."""
        if not parent:
            return self._root
        if self._handle >= 0 and self._parent == parent:
            return self._handle
        handle = os.dup(self._root)
        try:
            for part in parent.split(b"/"):
                below = os.open(part, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = below
        except BaseException:
            os.close(handle)
            raise
        self._leave()
        self._handle, self._parent = handle, parent
        return handle

    def look(self, path: str) -> os.stat_result | None:
        """What is at a path, itself not followed; nothing when it is gone or behind a link.

        Raises:
            RepositoryError: that cannot be seen.
        """
        parent, _, name = to_bytes(path).rpartition(b"/")
        try:
            return os.stat(name, dir_fd=self._enter(parent), follow_symlinks=False)
        except _GONE:
            return None
        except OSError as error:
            if _is_link(error):
                return None
            raise unreadable_error(path, error) from error

    def open(self, path: str) -> int | None:
        """A handle of an ordinary file, for the caller to close; nothing when it is gone.

        Raises:
            RepositoryError: it cannot be read.
        """
        parent, _, name = to_bytes(path).rpartition(b"/")
        try:
            return os.open(name, _FILE, dir_fd=self._enter(parent))
        except _GONE:
            return None
        except OSError as error:
            if _is_link(error):
                return None
            raise unreadable_error(path, error) from error

    def read_link(self, path: str) -> bytes | None:
        """Where a link points; nothing when it is gone."""
        parent, _, name = to_bytes(path).rpartition(b"/")
        try:
            return os.readlink(name, dir_fd=self._enter(parent))
        except OSError:
            return None

    def has(self, path: str) -> bool:
        return self.look(path) is not None

    def is_folder(self, path: str) -> bool:
        seen = self.look(path)
        return seen is not None and stat.S_ISDIR(seen.st_mode)

    def is_empty(self, path: str) -> bool:
        try:
            return not os.listdir(self._enter(to_bytes(path)))
        except OSError:
            return False

    def folder_mode(self, path: str) -> int:
        """The permissions of a folder; -1 when there is none."""
        seen = self.look(path)
        return stat.S_IMODE(seen.st_mode) if seen is not None and stat.S_ISDIR(seen.st_mode) else -1

    def walk(self, top: str, without: set[str] | None = None) -> Iterator[tuple[str, bool]]:
        """Everything below a folder that is no folder, and every folder with nothing in it (as true).

        Raises:
            RepositoryError: a folder cannot be opened.
        """
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                names = sorted(os.listdir(self._enter(to_bytes(folder))))
            except _GONE:
                continue
            except OSError as error:
                if _is_link(error):
                    continue
                raise unreadable_error(folder, error) from error
            if not names:
                yield folder, True
            for name in names:
                path = f"{folder}/{to_text(os.fsencode(name))}"
                if without is not None and path in without:
                    continue
                if self.is_folder(path):
                    waiting.append(path)
                else:
                    yield path, False


def _is_link(error: OSError) -> bool:
    import errno  # noqa: PLC0415 - only when something is odd

    return error.errno in (errno.ELOOP, errno.ENXIO)
