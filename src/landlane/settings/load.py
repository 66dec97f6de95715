"""Read and check landlane.toml, with a cache of the parsed result."""

from __future__ import annotations

import marshal
import os

from landlane.errors import SettingsError
from landlane.files import write_whole
from landlane.settings.model import FILE_NAME, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_CACHE_FORM = 9  # raise it when a field changes its name or form

_FILE_KIND, _REGULAR = 0o170000, 0o100000  # what `stat` would call S_IFMT and S_IFREG, without its import


def read_settings(root: str, cache: str = "") -> Settings:
    """Return the settings of the checkout at `root`; `cache` is a file that keeps their plain form.

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
    # A second change within the clock's resolution may keep size and mtime; ctime and inode show it.
    stamp = (_CACHE_FORM, path, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
    plain = _load(cache, stamp)
    if plain is None:
        from landlane.settings.readers import read_plain  # noqa: PLC0415 - start-up: not with a warm cache

        plain = read_plain(_parse(path))
        _save(cache, stamp, plain)
    return Settings.from_plain(plain)


def _load(cache: str, stamp: tuple[object, ...]) -> dict[str, Any] | None:
    try:
        with open(cache, "rb") as file:
            old_stamp, plain = marshal.loads(file.read())  # noqa: S302 - our own file, in git's own folder
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return plain if old_stamp == stamp else None


def _save(cache: str, stamp: tuple[object, ...], plain: dict[str, Any]) -> None:
    """Keep the plain form for the next process; without it that one is only slower."""
    if not cache:
        return
    try:
        write_whole(cache, marshal.dumps((stamp, plain)))  # pyright: ignore[reportArgumentType]
    except OSError:
        return


def _parse(path: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - start-up: not with a warm cache

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (ValueError, RecursionError) as error:  # also not UTF-8, or nested too deeply
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
