"""Reading text files that people name in the settings: only inside the repository, never more than wanted."""

from __future__ import annotations

import os
import stat

from landlane.errors import RepositoryError
from landlane.values import value

_GIT = ".git"


@value
class TextFile:
    """What was read of a file; `size` is that of all of it."""

    path: str
    text: str
    size: int
    is_cut: bool


def place_inside(root: str, path: str) -> str:
    """Where a path below `root` leads, through links that stay inside.

    Raises:
        RepositoryError: it leads out of the repository, or into git's own files.
    """
    home = os.path.realpath(root)
    if "\0" in path:
        raise _outside(path)
    real = os.path.realpath(os.path.join(home, path))
    if os.path.isabs(path) or not real.startswith(home.rstrip("/") + "/"):
        raise _outside(path)
    if _GIT in os.path.relpath(real, home).split("/"):
        raise _outside(path)
    return real


def _outside(path: str) -> RepositoryError:
    return RepositoryError(
        f"{path[:200]!r} lies outside of the repository, or leads out of it",
        code="FILE_OUTSIDE",
        hint="name a file inside the repository, and no link that leads out of it",
    )


def read_text(root: str, path: str, most_bytes: int) -> TextFile | None:
    """The beginning of a text file below `root`; nothing when there is no such file.

    Raises:
        RepositoryError: it lies outside, is no plain file, cannot be read, or is no text.
    """
    real = place_inside(root, path)
    try:
        # Not blocking: of a pipe or a device the end would never come.
        file = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise _unreadable(path, "it is no plain file")
        content = _read_all(file, most_bytes)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    finally:
        os.close(file)
    is_cut = len(content) > most_bytes
    text = _as_text(path, content[:most_bytes], is_cut=is_cut)
    return TextFile(path=path, text=text, size=max(found.st_size, len(content)), is_cut=is_cut)


def _read_all(file: int, most_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = most_bytes + 1
    while left > 0 and (part := os.read(file, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _as_text(path: str, content: bytes, *, is_cut: bool) -> str:
    if b"\0" in content:
        raise _no_text(path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if is_cut and error.start >= len(content) - 3:  # cut in the middle of a letter
            return content[: error.start].decode("utf-8")
        raise _no_text(path) from error


def _unreadable(path: str, why: str) -> RepositoryError:
    return RepositoryError(
        f"{path[:200]} cannot be read: {why}",
        code="FILE_UNREADABLE",
        hint="make it a plain file that this user may read",
    )


def _no_text(path: str) -> RepositoryError:
    return RepositoryError(
        f"{path[:200]} is no text in UTF-8", code="NOT_TEXT", hint="save it as UTF-8, or name another file"
    )
