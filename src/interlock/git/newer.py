"""Whether anything in a checkout was changed since a moment, told by the times of its files."""

from __future__ import annotations

import os
import time

from interlock.values import value

_CLOCK_NS = 20_000_000  # file times lag behind the clock by up to a tick


@value
class Instant:
    """A moment, by the clock that stamps files and by the one that nobody can set."""

    wall_ns: int
    steady_ns: int


def instant() -> Instant:
    """This moment."""
    return Instant(wall_ns=time.time_ns(), steady_ns=time.monotonic_ns())


def has_newer(root: str, git_dir: str, since: Instant) -> bool:
    """Whether anything was written, moved, deleted or committed since.

    It is told by `ctime`, which no program can set back; a clock that was set meanwhile tells nothing, and
    counts as a change. Of the root only its `mtime` counts, since being renamed changes the other.
    """
    now = instant()
    if abs((now.wall_ns - since.wall_ns) - (now.steady_ns - since.steady_ns)) > _CLOCK_NS:
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
