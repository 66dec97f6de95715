"""Read and write files of users: atomically, through links, and keeping their modes."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence

from landlane.errors import LandlaneError
from landlane.files import sync_folder
from landlane.ids import sha256

_WRITE_BITS = 0o222
_SCRATCH = ".landlane-new"  # always the same name: only the holder of the init lock writes


def read_bytes(path: str) -> bytes | None:
    """Return the content of a file; None when there is none, also where a link leads nowhere.

    Raises:
        LandlaneError: it is not a file, or cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise refused(path, error.strerror or str(error)) from error


def mode_of(path: str) -> int:
    """Return the permissions of a file; -1 when there is none."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return -1


def fingerprint(content: bytes | None) -> str:
    """Return the SHA-256 of a content; empty for no file."""
    return "" if content is None else sha256(content).hexdigest()


def check_writable(path: str) -> None:
    """Check that a file can be written, before anything is.

    Raises:
        LandlaneError: it is a folder or read-only, or nothing can be made where it should be.
    """
    real = os.path.realpath(path)
    if os.path.isdir(real):
        raise refused(path, "it is a folder")
    if os.path.lexists(real):
        mode = mode_of(real)
        if not mode & _WRITE_BITS or not os.access(real, os.W_OK):
            raise refused(path, "it is read-only")
    folder = os.path.dirname(real)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise refused(path, f"{folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK) or not mode_of(folder) & _WRITE_BITS:
        raise refused(path, f"{folder} is read-only")


def write_bytes(path: str, content: bytes, mode: int = -1) -> None:
    """Write a file atomically and durably, where its link leads; its mode stays unless one is given.

    Raises:
        LandlaneError: the system refuses; the file is as it was.
    """
    real = os.path.realpath(path)
    scratch = real + _SCRATCH
    try:
        os.makedirs(os.path.dirname(real), exist_ok=True)
        with open(scratch, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(real):
            _keep_owner(real, scratch)
        if mode >= 0:
            os.chmod(scratch, mode)
        os.replace(scratch, real)
        sync_folder(os.path.dirname(real))
    except OSError as error:
        remove_scratch(path)
        raise refused(path, error.strerror or str(error)) from error


def remove_file(path: str) -> None:
    """Remove the file that a path or its link leads to; a link stays, and a missing file is fine.

    Raises:
        LandlaneError: the system refuses.
    """
    try:
        real = os.path.realpath(path)
        os.unlink(real)
        sync_folder(os.path.dirname(real))
    except FileNotFoundError:
        return
    except OSError as error:
        raise refused(path, error.strerror or str(error)) from error


def missing_folders(path: str) -> list[str]:
    """Return the folders that have to be created for a file, the deepest first."""
    missing: list[str] = []
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


def remove_folders(folders: Sequence[str]) -> None:
    """Remove folders that we created if they are empty; the deepest come first."""
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            continue


def refused(path: str, why: str) -> LandlaneError:
    """Return the error for a file that cannot be read or written."""
    return LandlaneError(
        f"{path}: {why}",
        code="FILE_REFUSED",
        hint="nothing was changed; fix that, or leave its client out with --client, and try again",
        path=path,
    )


def _keep_owner(real: str, scratch: str) -> None:
    shutil.copymode(real, scratch)
    try:
        there = os.stat(real)
        os.chown(scratch, there.st_uid, there.st_gid)
    except OSError:
        return  # only root may change owners


def remove_scratch(path: str) -> None:
    """Remove what an interrupted write left beside a file."""
    try:
        os.unlink(os.path.realpath(path) + _SCRATCH)
    except OSError:
        return
