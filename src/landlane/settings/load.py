"""Read and check landlane.toml, with a cache of the parsed result."""

from __future__ import annotations

import marshal
import os

from landlane.errors import SettingsError
from landlane.files import open_regular, write_atomically
from landlane.settings.model import FILE_NAME, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


CACHE_FORM = 12  # raise it when a field changes its name or form

_FILE_KIND, _REGULAR = 0o170000, 0o100000  # what `stat` would call S_IFMT and S_IFREG, without its import


def read_settings(root: str, cache: str = "", local: str = "") -> Settings:
    """Return the settings of the checkout at `root`, with those of the file `local` over them.

    `cache` is a file that keeps their plain form.

    Raises:
        SettingsError: a file is not TOML, or holds an unknown or unusable key.
    """
    paths = (os.path.join(root, FILE_NAME), *((local,) if local else ()))
    files = [_identity(path) for path in paths]
    if not any(files):
        return Settings()
    stamp = (CACHE_FORM, paths, tuple(files))
    plain = _load(cache, stamp)
    if plain is None:
        from landlane.settings.readers import read_plain  # noqa: PLC0415 - start-up: not with a warm cache

        found = [path for path, file in zip(paths, files, strict=True) if file]
        document = merge_documents(*map(_parse, found))
        try:
            plain = read_plain(document)
        except SettingsError as error:
            raise _located(error, found) from None
        _save(cache, stamp, plain)
    return Settings.from_plain(plain)


def read_last_good(cache: str) -> Settings | None:
    """Return the settings that were read last, though their file may have changed; None if there are none."""
    found = _read_cache(cache)
    return Settings.from_plain(found[1]) if found is not None and found[0][0] == CACHE_FORM else None


def read_local(path: str) -> dict[str, Any]:
    """Return the parsed file with the settings of one clone; empty if there is none.

    Raises:
        SettingsError: it is not TOML.
    """
    return _parse(path) if _identity(path) else {}


def merge_documents(first: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """Return parsed settings files as one; a later one wins key by key."""
    merged = dict(first)
    for other in others:
        for name, content in other.items():
            below = merged.get(name)
            both = _tables(below, content)
            merged[name] = merge_documents(*both) if both else content
    return merged


def _tables(*contents: Any) -> list[dict[str, Any]]:
    """Return these values if all of them are tables, else nothing."""
    return list(contents) if all(isinstance(content, dict) for content in contents) else []


def _identity(path: str) -> tuple[int, ...]:
    """Return what identifies the content of a file; empty if there is no file.

    A second change within the clock's resolution may keep size and mtime; ctime and inode show it.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    if found.st_mode & _FILE_KIND != _REGULAR:
        raise _unreadable(path, "it is not a regular file")
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _load(cache: str, stamp: tuple[object, ...]) -> dict[str, Any] | None:
    found = _read_cache(cache)
    return found[1] if found is not None and found[0] == stamp else None


def _read_cache(cache: str) -> tuple[tuple[object, ...], dict[str, Any]] | None:
    try:
        with open(cache, "rb", opener=open_regular) as file:
            stamp, plain = marshal.loads(file.read())  # noqa: S302 - our own file, in git's own folder
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return stamp, plain


def _save(cache: str, stamp: tuple[object, ...], plain: dict[str, Any]) -> None:
    """Keep the plain form for the next process; without it that one is only slower."""
    if not cache:
        return
    try:
        write_atomically(cache, marshal.dumps((stamp, plain)))  # pyright: ignore[reportArgumentType]
    except OSError:
        return


def _located(error: SettingsError, paths: list[str]) -> SettingsError:
    """Return an error about a setting with the file, the line and a caret under the mistake."""
    from landlane.settings.locate import locate_error  # noqa: PLC0415 - only a mistake needs it

    for path in reversed(paths):  # the last file wins
        with open(path, encoding="utf-8") as file:
            located = locate_error(error, os.path.basename(path), file.read())
        if located is not None:
            return located
    return error


def _parse(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    return parse_text(os.path.basename(path), content)


def parse_text(file: str, content: bytes) -> dict[str, Any]:
    """Return the document that the content of a settings file describes.

    Raises:
        SettingsError: it is not TOML.
    """
    import tomllib  # noqa: PLC0415 - start-up: not with a warm cache

    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # also not UTF-8, or nested too deeply
        from landlane.settings.locate import not_toml  # noqa: PLC0415 - only a mistake needs it

        raise not_toml(file, content.decode("utf-8", "replace"), error) from error


def _unreadable(path: str, why: str | None) -> SettingsError:
    return SettingsError(
        f"{os.path.basename(path)} cannot be read: {why}",
        code="SETTINGS_UNREADABLE",
        hint=f"let this user read it: chmod u+r {os.path.basename(path)}",
    )
