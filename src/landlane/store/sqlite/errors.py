"""SQLite's errors in words a person can act on."""

from __future__ import annotations

import errno
import sqlite3

from landlane.errors import LandlaneError, StoreCorrupt, StoreError, StoreTransient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_BUSY = (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED
_DAMAGED = (11, 26)  # SQLITE_CORRUPT, SQLITE_NOTADB
_WORDS: dict[int, tuple[str, str, str]] = {
    3: ("STORE_FORBIDDEN", "may not be used by this user", "check the owner and mode of its folder"),
    8: ("STORE_READONLY", "cannot be written", "make the file and its folder writable for this user"),
    10: ("STORE_IO", "met an input/output error of the disk", "check the disk, then run `landlane doctor`"),
    13: ("STORE_FULL", "has no room: the disk is full", "free some space; nothing was changed"),
    14: ("STORE_UNOPENABLE", "cannot be opened", "check that its folder exists and is writable"),
}


class translated:  # noqa: N801 - reads as a word in `with translated(path):`
    """Turns SQLite's exceptions into ours; lighter than contextlib, because every claim passes here."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, sqlite3.Error):
            raise translate(error, self._path) from error
        if isinstance(error, OSError):
            raise _from_os(error, self._path) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else was in the way."""
    return _code(error) in _BUSY


def busy(path: str) -> StoreTransient:
    """The store stayed locked for as long as we may wait."""
    from landlane.store.sqlite.lock_holder import lock_holder  # noqa: PLC0415 - only a failure needs it

    holder = lock_holder(path)
    hint = "try again; if it lasts, `fuser` shows who holds the file (a stopped process can be continued)"
    if holder is not None and holder.is_stopped:
        hint = f"`kill -CONT {holder.pid}` lets it go on, `kill -9 {holder.pid}` ends it: nothing is lost"
    elif holder is not None:
        hint = f"try again; if it lasts, see what process {holder.pid} does; ending it loses nothing"
    error = StoreTransient(
        f"the store {path} stayed locked by {holder or 'another program'}", code="STORE_BUSY", hint=hint
    )
    error.exit_code = 5
    return error


def translate(error: sqlite3.Error, path: str) -> LandlaneError:
    """Our error for one of SQLite's."""
    code = _code(error)
    if code in _BUSY:
        return busy(path)
    if code in _DAMAGED or (isinstance(error, sqlite3.DatabaseError) and "malformed" in str(error)):
        return StoreCorrupt(
            f"the store {path} is damaged or not a store: {error}",
            code="STORE_CORRUPT",
            hint="`landlane doctor --fix` keeps it aside and rebuilds it from journal.jsonl",
        )
    name, words, hint = _WORDS.get(code, ("STORE_FAILED", f"failed: {error}", "run `landlane doctor`"))
    return StoreError(f"the store {path} {words}", code=name, hint=hint)


def _from_os(error: OSError, path: str) -> LandlaneError:
    by_number = {
        errno.EROFS: 8,
        errno.EACCES: 8,
        errno.EPERM: 8,
        errno.ENOSPC: 13,
        errno.EDQUOT: 13,
        errno.EIO: 10,
    }
    name, words, hint = _WORDS[by_number.get(error.errno or 0, 14)]
    return StoreError(f"the store {path} {words} ({error.strerror})", code=name, hint=hint)


def _code(error: sqlite3.Error) -> int:
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
