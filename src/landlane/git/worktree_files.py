"""Read and write a working tree step by step from its root, so that no link can lead out of it.

Folders may be swapped for links at any moment, so every step opens the next folder without following links.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from landlane.errors import RepositoryError
from landlane.files import is_inside
from landlane.git.untrusted_checkout import to_bytes, to_text
from landlane.platform.process import read_umask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (FileNotFoundError, NotADirectoryError)
_MODES = 0o7777


def unreadable_error(path: str, error: OSError) -> RepositoryError:
    """Return the error for a file that cannot be saved, so that nothing is deleted."""
    return RepositoryError(
        f"cannot be read, so it cannot be saved: {to_bytes(path).decode('utf-8', 'backslashreplace')} "
        f"({os.strerror(error.errno or 0)})",
        code="RESCUE_UNREADABLE",
        hint="make it readable, or remove it, and try again",
    )


def default_modes() -> tuple[int, int, int]:
    """Return the permissions of a new folder, program and file, as the umask leaves them."""
    mask = read_umask()
    return 0o777 & ~mask, 0o777 & ~mask, 0o666 & ~mask


class TreeReader:
    """Reads what is below a folder; the last folder stays open, since paths come sorted."""

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
        """Return a handle of a folder below the root; the caller must not close it."""
        if not parent:
            return self._root
        if self._handle >= 0 and self._parent == parent:
            return self._handle
        handle = _open_below(self._root, parent.split(b"/"), is_making=False)
        self._leave()
        self._handle, self._parent = handle, parent
        return handle

    def lstat(self, path: str) -> os.stat_result | None:
        """Return the state of a path, without following it; None when it is gone or behind a link.

        Raises:
            RepositoryError: a folder on the way cannot be read.
        """
        parent, _, name = to_bytes(path).rpartition(b"/")
        try:
            return os.stat(name, dir_fd=self._enter(parent), follow_symlinks=False)
        except OSError as error:
            return _check_gone(path, error)

    def open(self, path: str) -> int | None:
        """Return a handle of a regular file, for the caller to close; None when it is gone.

        Raises:
            RepositoryError: it cannot be read.
        """
        parent, _, name = to_bytes(path).rpartition(b"/")
        try:
            return os.open(name, _FILE, dir_fd=self._enter(parent))
        except OSError as error:
            return _check_gone(path, error)

    def read_link(self, path: str) -> bytes | None:
        """Return the target of a link; None when it is gone."""
        parent, _, name = to_bytes(path).rpartition(b"/")
        try:
            return os.readlink(name, dir_fd=self._enter(parent))
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        return self.lstat(path) is not None

    def is_folder(self, path: str) -> bool:
        return self.folder_mode(path) >= 0

    def is_empty(self, path: str) -> bool:
        try:
            return not os.listdir(self._enter(to_bytes(path)))
        except OSError:
            return False

    def is_special(self, path: str) -> bool:
        """Return whether it is a socket, pipe or device."""
        found = self.lstat(path)
        return found is not None and not _is_ordinary(found.st_mode)

    def list_special(self, folder: str) -> list[str]:
        """Return the sockets, pipes and devices in a folder."""
        try:
            with os.scandir(self._enter(to_bytes(folder))) as found:
                names = [
                    entry.name
                    for entry in found
                    if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False))
                    and not entry.is_symlink()
                ]
        except OSError:
            return []
        return [os.path.join(folder, to_text(os.fsencode(name))) for name in sorted(names)]

    def folder_mode(self, path: str) -> int:
        """Return the permissions of a folder; -1 when there is none."""
        found = self.lstat(path)
        return stat.S_IMODE(found.st_mode) if found is not None and stat.S_ISDIR(found.st_mode) else -1

    def walk(self, top: str, without: set[str] | None = None) -> Iterator[tuple[str, bool]]:
        """Yield every file and link below a folder with False, and every empty folder with True.

        Raises:
            RepositoryError: a folder cannot be opened.
        """
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                names = sorted(os.listdir(self._enter(to_bytes(folder))))
            except OSError as error:
                _check_gone(folder, error)
                continue
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


def _is_ordinary(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)


def _check_gone(path: str, error: OSError) -> None:
    """Raise our error, unless the path is gone or behind a link."""
    if not isinstance(error, _GONE) and error.errno not in (errno.ELOOP, errno.ENXIO):
        raise unreadable_error(path, error) from error


class TreeWriter:
    """Creates, replaces and removes files below a folder."""

    def __init__(self, root: str) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> TreeWriter:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def write(self, path: str, chunks: Iterable[bytes], mode: int) -> None:
        """Write a file, in place of an existing one."""
        folder, name = self._enter(path)
        try:
            _clear(name, folder)
            _write_new(name, folder, chunks, mode)
        finally:
            os.close(folder)

    def replace(self, path: str, chunks: Iterable[bytes], mode: int) -> None:
        """Write a file so that readers find the old one or the new one, never half of it."""
        folder, name = self._enter(path)
        try:
            new = b".%s.new-%d" % (name[:200], os.getpid())
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=folder)
            _write_new(new, folder, chunks, mode)
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def link(self, path: str, target: bytes) -> None:
        """Create a link, in place of an existing file."""
        folder, name = self._enter(path)
        try:
            _clear(name, folder)
            os.symlink(target, name, dir_fd=folder)
        finally:
            os.close(folder)

    def make_folder(self, path: str) -> None:
        os.close(self._enter(f"{path}/.")[0])

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permissions of a file or folder; links and missing paths are left alone."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            folder, name = self._enter(path, is_making=False)
            try:
                handle = os.open(name, _FILE, dir_fd=folder)
                os.fchmod(handle, mode & _MODES)
                os.close(handle)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOENT):
                    raise
            finally:
                os.close(folder)

    def remove(self, path: str) -> None:
        """Remove a file, and the folders that become empty."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            self.unlink(path)
            self.remove_empty(os.path.dirname(path))

    def unlink(self, path: str) -> None:
        """Remove a file but no folder."""
        folder, name = self._enter(path, is_making=False)
        try:
            os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)

    def remove_empty(self, path: str) -> None:
        """Remove a folder and those above it, as long as they are empty."""
        parts = to_bytes(path).split(b"/") if path else []
        for depth in range(len(parts), 0, -1):
            above, last = _open_below(self._root, parts[: depth - 1], is_making=False), parts[depth - 1]
            try:
                os.rmdir(last, dir_fd=above)
            except OSError:
                return
            finally:
                os.close(above)

    def _enter(self, path: str, *, is_making: bool = True) -> tuple[int, bytes]:
        """Return a handle of the folder of a path, for the caller to close, and the name in it."""
        if not is_inside(path.removesuffix("/.")):
            raise RepositoryError(
                f"the rescue names a path outside of the tree: {path!r}",
                code="RESCUE_MALFORMED",
                hint="it was not made by landlane; nothing more is written",
            )
        *parents, name = to_bytes(path).split(b"/")
        return _open_below(self._root, parents, is_making=is_making), name


def _open_below(root: int, parts: list[bytes], *, is_making: bool) -> int:
    """Return a handle of a folder below an open one, reached without following links."""
    handle = os.dup(root)
    try:
        for part in parts:
            below = _open_folder(part, handle, is_making=is_making)
            os.close(handle)
            handle = below
    except BaseException:
        os.close(handle)
        raise
    return handle


def _open_folder(name: bytes, above: int, *, is_making: bool) -> int:
    """Open a folder; with `is_making`, create it in place of a file or link."""
    if is_making:
        try:
            found = os.stat(name, dir_fd=above, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=above)
                os.mkdir(name, dir_fd=above)
        except FileNotFoundError:
            os.mkdir(name, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)


def _write_new(name: bytes, folder: int, chunks: Iterable[bytes], mode: int) -> None:
    with open(os.open(name, _NEW, 0o600, dir_fd=folder), "wb") as file:
        file.writelines(chunks)
        file.flush()
        os.fchmod(file.fileno(), mode & _MODES)


def _clear(name: bytes, folder: int) -> None:
    """Remove what is in the place of a new file; a folder that is not empty is an error."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
