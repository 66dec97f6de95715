"""Writing into a working tree step by step from its root, so that no link can lead a write out of it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from landlane.errors import RepositoryError
from landlane.git.untrusted_checkout import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODES = 0o7777


def is_inside(path: str) -> bool:
    """Whether a path stays within a working tree and out of its `.git`."""
    parts = path.split("/")
    return (
        "\0" not in path and parts[0].lower() != ".git" and not any(part in {"", ".", ".."} for part in parts)
    )


class TreeWriter:
    """Makes, replaces and removes what is below a folder."""

    def __init__(self, root: str) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> TreeWriter:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def write(self, path: str, chunks: Iterable[bytes], mode: int) -> None:
        """Write a file, in place of whatever was there."""
        folder, name = self._enter(path)
        try:
            _clear(name, folder)
            with open(os.open(name, _NEW, 0o600, dir_fd=folder), "wb") as file:
                file.writelines(chunks)
                file.flush()
                os.fchmod(file.fileno(), mode & _MODES)
        finally:
            os.close(folder)

    def replace(self, path: str, chunks: Iterable[bytes], mode: int) -> None:
        """Write a file so that whoever looks finds the old one or the new one, and never half of it."""
        folder, name = self._enter(path)
        try:
            new = b".%s.new-%d" % (name[:200], os.getpid())
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=folder)
            with open(os.open(new, _NEW, 0o600, dir_fd=folder), "wb") as file:
                file.writelines(chunks)
                file.flush()
                os.fchmod(file.fileno(), mode & _MODES)
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def link(self, path: str, target: bytes) -> None:
        """Make a link, in place of whatever was there."""
        folder, name = self._enter(path)
        try:
            _clear(name, folder)
            os.symlink(target, name, dir_fd=folder)
        finally:
            os.close(folder)

    def make_folder(self, path: str) -> None:
        os.close(self._enter(f"{path}/.")[0])

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permissions of a file or folder; links and what is missing are left alone."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            folder, name = self._enter(path, is_making=False)
            try:
                handle = os.open(
                    name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
                )
                os.fchmod(handle, mode & _MODES)
                os.close(handle)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOENT):
                    raise
            finally:
                os.close(folder)

    def remove(self, path: str) -> None:
        """Remove a file, and the folders that are empty without it."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            self.unlink(path)
            self.remove_empty(os.path.dirname(path))

    def unlink(self, path: str) -> None:
        """Remove a file and nothing else."""
        folder, name = self._enter(path, is_making=False)
        try:
            os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)

    def remove_empty(self, path: str) -> None:
        """Remove a folder and those above it, as far up as nothing else is in them."""
        parts = to_bytes(path).split(b"/") if path else []
        for depth in range(len(parts), 0, -1):
            above, last = self._walk(parts[: depth - 1], is_making=False), parts[depth - 1]
            try:
                os.rmdir(last, dir_fd=above)
            except OSError:
                return
            finally:
                os.close(above)

    def _enter(self, path: str, *, is_making: bool = True) -> tuple[int, bytes]:
        """The folder that a path is in, for the caller to close, and the name in it."""
        if not is_inside(path.removesuffix("/.")):
            raise RepositoryError(
                f"the rescue names a path outside of the tree: {path!r}",
                code="RESCUE_MALFORMED",
                hint="it was not made by landlane; nothing more is written",
            )
        *parents, name = to_bytes(path).split(b"/")
        return self._walk(parents, is_making=is_making), name

    def _walk(self, parts: list[bytes], *, is_making: bool) -> int:
        handle = os.dup(self._root)
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
    """Open a folder; when it is to be made, a file or link in its place gives way."""
    if is_making:
        try:
            seen = os.stat(name, dir_fd=above, follow_symlinks=False)
            if not stat.S_ISDIR(seen.st_mode):
                os.unlink(name, dir_fd=above)
                os.mkdir(name, dir_fd=above)
        except FileNotFoundError:
            os.mkdir(name, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)


def _clear(name: bytes, folder: int) -> None:
    """Make room for a file; a folder that has something in it stays, and stops us."""
    with contextlib.suppress(FileNotFoundError):
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(seen.st_mode):
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
