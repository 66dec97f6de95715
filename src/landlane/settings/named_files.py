"""Read text files that the settings name: only inside the repository, and only up to a limit."""

from __future__ import annotations

import os
import stat

from landlane.errors import RepositoryError
from landlane.values import value


@value
class TextFile:
    """The text read from a file; `size` is that of the complete file."""

    path: str
    text: str
    size: int
    is_cut: bool


def read_text(root: str, path: str, most_bytes: int) -> TextFile | None:
    """Return the beginning of a text file below `root`; None if the file does not exist.

    Raises:
        RepositoryError: it is outside the repository, not a plain file, not readable, or not text.
    """
    real = _resolve_inside(root, path)
    try:
        # O_NONBLOCK: reading a pipe or a device might never end.
        file = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise _unreadable(path, "it is not a regular file")
        with open(file, "rb", closefd=False) as opened:
            content = opened.read(most_bytes + 1)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    finally:
        os.close(file)
    is_cut = len(content) > most_bytes
    text = _decode(path, content[:most_bytes], is_cut=is_cut)
    return TextFile(path=path, text=text, size=max(status.st_size, len(content)), is_cut=is_cut)


def decoded(path: str, found: tuple[int, bytes] | None, most_bytes: int) -> TextFile | None:
    """Return the text of a file that was read elsewhere, given its size and its beginning.

    Raises:
        RepositoryError: it is not text.
    """
    if found is None:
        return None
    size, content = found
    text = _decode(path, content[:most_bytes], is_cut=size > most_bytes)
    return TextFile(path=path, text=text, size=size, is_cut=size > most_bytes)


def check_inside(path: str) -> None:
    """Refuse a path that does not name a file in a commit.

    Raises:
        RepositoryError: it leads out of the repository.
    """
    if os.path.isabs(path) or not {"..", ".git", ""}.isdisjoint(path.split("/")) or "\0" in path:
        raise _outside(path)


def _outside(path: str) -> RepositoryError:
    return RepositoryError(
        f"{path[:200]!r} lies outside of the repository, or leads out of it",
        code="FILE_OUTSIDE",
        hint="name a file inside the repository, and no link that leads out of it",
    )


def _resolve_inside(root: str, path: str) -> str:
    """Return the real path of a file below `root`; links may not lead out of it, or into git's own files."""
    home = os.path.realpath(root)
    real = os.path.realpath(os.path.join(home, path)) if "\0" not in path else ""
    is_inside = not os.path.isabs(path) and real.startswith(home.rstrip("/") + "/")
    if not is_inside or ".git" in os.path.relpath(real, home).split("/"):
        raise _outside(path)
    return real


def _decode(path: str, content: bytes, *, is_cut: bool) -> str:
    try:
        if b"\0" not in content:
            return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if is_cut and error.start >= len(content) - 3:  # cut in the middle of a character
            return content[: error.start].decode("utf-8")
    raise RepositoryError(
        f"{path[:200]} is not UTF-8 text", code="NOT_TEXT", hint="save it as UTF-8, or name another file"
    )


def _unreadable(path: str, why: str) -> RepositoryError:
    return RepositoryError(
        f"{path[:200]} cannot be read: {why}",
        code="FILE_UNREADABLE",
        hint="make it a plain file that this user may read",
    )
