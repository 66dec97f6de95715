"""Read and check landlane.toml, with a cache of the parsed result."""

from __future__ import annotations

import marshal
import os

from landlane.errors import SettingsError
from landlane.files import write_whole
from landlane.settings.choices import FILE_NAME
from landlane.settings.model import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_CACHE_FORM = 8  # raise it when what is remembered changes its form

_FILE_KIND, _REGULAR = 0o170000, 0o100000  # what `stat` would call S_IFMT and S_IFREG, without its import


def read_settings(root: str, memory: str = "") -> Settings:
    """The settings of the checkout at `root`; `memory` is a file that remembers the last reading.

    Raises:
        SettingsError: the file is not TOML, or holds an unknown or unusable key.
    """
    path = os.path.join(root, FILE_NAME)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise _unreadable(error.strerror) from error
    if found.st_mode & _FILE_KIND != _REGULAR:
        raise _unreadable("it is no regular file")
    # A change within the clock's resolution keeps the size and the time: ctime and inode tell more.
    stamp = (_CACHE_FORM, path, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
    fields = _recall(memory, stamp)
    if fields is None:
        from landlane.settings.check import check_settings  # noqa: PLC0415 - not with a warm cache

        fields = check_settings(_parse(path))
        _remember(memory, stamp, fields)
    return Settings(**fields)


def _recall(memory: str, stamp: tuple[object, ...]) -> dict[str, Any] | None:
    try:
        with open(memory, "rb") as file:
            old_stamp, fields = marshal.loads(file.read())  # noqa: S302 - our own file, in git's own folder
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return fields if old_stamp == stamp else None


def _remember(memory: str, stamp: tuple[object, ...], fields: dict[str, Any]) -> None:
    """Keep the reading for the next process; failing to is only slower."""
    if not memory:
        return
    try:
        write_whole(memory, marshal.dumps((stamp, fields)))  # pyright: ignore[reportArgumentType]
    except OSError:
        return


def _parse(path: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - dear to import, and only needed when the file changed

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (ValueError, RecursionError) as error:  # also for what is no UTF-8, or nested beyond all reason
        raise SettingsError(
            f"{FILE_NAME} is not valid TOML: {error}",
            code="SETTINGS_NOT_TOML",
            hint="mend the line it names, or move the file away to go on with the defaults",
        ) from error
    except OSError as error:
        raise _unreadable(error.strerror) from error


def _unreadable(why: str | None) -> SettingsError:
    return SettingsError(
        f"{FILE_NAME} cannot be read: {why}",
        code="SETTINGS_UNREADABLE",
        hint="make it a file that this user may read, or move it away to go on with the defaults",
    )
