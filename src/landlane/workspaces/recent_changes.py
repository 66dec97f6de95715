"""Find out by file times whether anything in a checkout was changed since a reading of the clocks."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time

from landlane.values import value

_CLOCK_NS = 20_000_000  # file times lag behind the clock by up to one tick of the kernel
_QUICK_NS = 2_000_000  # two readings further apart than this were interrupted
_TRIES = 10


@value
class ClockReading:
    """The wall clock, which stamps files, and the monotonic clock, which cannot be set, at one moment.

    With `has_file_times`, the file systems concerned stamp files by this wall clock, and finely enough.
    """

    wall_ns: int
    steady_ns: int
    has_file_times: bool


def read_clocks(*folders: str) -> ClockReading:
    """Read the clocks; a temporary file in each folder shows how its file system stamps files."""
    has_file_times = all(_stamps_finely(folder) for folder in folders)
    wall_ns, steady_ns = _clocks()
    return ClockReading(wall_ns=wall_ns, steady_ns=steady_ns, has_file_times=has_file_times)


def _clocks() -> tuple[int, int]:
    """Return both clocks at the same moment, unless every try is interrupted."""
    wall_ns = steady_ns = 0
    for _ in range(_TRIES):
        begun_ns = time.monotonic_ns()
        wall_ns, steady_ns = time.time_ns(), time.monotonic_ns()
        if steady_ns - begun_ns <= _QUICK_NS:
            break
    return wall_ns, steady_ns


def _stamps_finely(folder: str) -> bool:
    """Return whether a new file gets the current time; some systems keep seconds, or a server's clock."""
    for _ in range(_TRIES):
        begun_ns = time.monotonic_ns()
        age_ns = _age_of_new_file(folder)
        if age_ns is None or abs(age_ns) <= _CLOCK_NS:
            return age_ns is not None
        if time.monotonic_ns() - begun_ns <= _QUICK_NS:
            break  # the stamp is wrong, and not only read late
    return False


def _age_of_new_file(folder: str) -> int | None:
    """Return the age of a new file by its stamp; None when the stamp has whole seconds or is unknown."""
    try:
        file = _open_unnamed(folder)
        try:
            stamp_ns = os.fstat(file).st_ctime_ns
            return time.time_ns() - stamp_ns if stamp_ns % 10**9 else None
        finally:
            os.close(file)
    except OSError:
        return None


def _open_unnamed(folder: str) -> int:
    """Open a new file that has no name, so that a killed process does not leave it behind."""
    with contextlib.suppress(AttributeError, OSError):  # neither all systems nor all file systems have them
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    file, path = tempfile.mkstemp(prefix=".time-", dir=folder)
    os.unlink(path)
    return file


def has_newer(root: str, git_dir: str, since: ClockReading) -> bool:
    """Return whether anything was written, moved, deleted or committed since.

    `ctime` shows it, which programs cannot set back. If file times say nothing, because a clock was set or
    the file system keeps them badly, that counts as a change. Of the root only `mtime` counts: renaming it
    changes its `ctime`.
    """
    now_ns, steady_ns = _clocks()
    drift_ns = (now_ns - since.wall_ns) - (steady_ns - since.steady_ns)
    if not since.has_file_times or abs(drift_ns) > _CLOCK_NS:
        return True
    since_ns = since.wall_ns - _CLOCK_NS
    try:
        if os.lstat(root).st_mtime_ns >= since_ns:
            return True
    except OSError:
        return True
    return _has_newer_below(root, ".git", since_ns) or _has_newer_below(git_dir, "objects", since_ns)


def _has_newer_below(top: str, excluded: str, since_ns: int) -> bool:
    for folder, names, files in os.walk(top):
        if folder == top and excluded in names:
            names.remove(excluded)
        if any(_changed_at(os.path.join(folder, name)) >= since_ns for name in (*names, *files)):
            return True
    return False


def _changed_at(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return -1
