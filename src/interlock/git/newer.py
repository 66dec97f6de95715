"""Whether anything in a checkout was changed since a moment, told by the times of its files."""

from __future__ import annotations

import os
import tempfile
import time

from interlock.values import value

_CLOCK_NS = 20_000_000  # file times lag behind the clock by up to a tick


@value
class Instant:
    """A moment, by the clock that stamps files and by the one that nobody can set.

    `is_telling`: the file systems that it is asked of stamp by this clock, and finely enough.
    """

    wall_ns: int
    steady_ns: int
    is_telling: bool


def instant(*folders: str) -> Instant:
    """This moment; in each of these folders a file is made for a moment, to see how its times are kept."""
    is_telling = all(_stamps_finely(folder) for folder in folders)
    return Instant(wall_ns=time.time_ns(), steady_ns=time.monotonic_ns(), is_telling=is_telling)


def _stamps_finely(folder: str) -> bool:
    """Whether a file made now bears the time of now; some have whole seconds, or a server's clock."""
    try:
        file, path = tempfile.mkstemp(prefix=".time-", dir=folder)
        try:
            return abs(os.fstat(file).st_ctime_ns - time.time_ns()) <= _CLOCK_NS
        finally:
            os.close(file)
            os.unlink(path)
    except OSError:
        return False


def has_newer(root: str, git_dir: str, since: Instant) -> bool:
    """Whether anything was written, moved, deleted or committed since.

    It is told by `ctime`, which no program can set back; where times tell nothing, because a clock was set
    meanwhile or the file system keeps them badly, that counts as a change. Of the root only its `mtime`
    counts, since being renamed changes the other.
    """
    now_ns, steady_ns = time.time_ns(), time.monotonic_ns()
    drift_ns = (now_ns - since.wall_ns) - (steady_ns - since.steady_ns)
    if not since.is_telling or abs(drift_ns) > _CLOCK_NS:
        return True
    since_ns = since.wall_ns - _CLOCK_NS
    try:
        if os.lstat(root).st_mtime_ns >= since_ns:
            return True
    except OSError:
        return True
    return _has_newer_below(root, ".git", since_ns) or _has_newer_below(git_dir, "objects", since_ns)


def _has_newer_below(top: str, left_out: str, since_ns: int) -> bool:
    for folder, names, files in os.walk(top):
        if folder == top and left_out in names:
            names.remove(left_out)
        if any(_changed_at(os.path.join(folder, name)) >= since_ns for name in (*names, *files)):
            return True
    return False


def _changed_at(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return -1
