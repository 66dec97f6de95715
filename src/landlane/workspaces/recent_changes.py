"""Whether anything in a checkout was changed since a moment, told by the times of its files."""

from __future__ import annotations

import os
import tempfile
import time

from landlane.values import value

_CLOCK_NS = 20_000_000  # file times lag behind the clock by up to a tick
_QUICK_NS = 2_000_000  # whoever took longer was not running all the time
_TRIES = 10


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
    wall_ns, steady_ns = _clocks()
    return Instant(wall_ns=wall_ns, steady_ns=steady_ns, is_telling=is_telling)


def _clocks() -> tuple[int, int]:
    """Both clocks at the same moment, unless this process is kept from running every time it looks."""
    wall_ns = steady_ns = 0
    for _ in range(_TRIES):
        begun_ns = time.monotonic_ns()
        wall_ns, steady_ns = time.time_ns(), time.monotonic_ns()
        if steady_ns - begun_ns <= _QUICK_NS:
            break
    return wall_ns, steady_ns


def _stamps_finely(folder: str) -> bool:
    """Whether a file made now bears the time of now; some have whole seconds, or a server's clock."""
    for _ in range(_TRIES):
        begun_ns = time.monotonic_ns()
        age_ns = _age_of_new_file(folder)
        if age_ns is None or abs(age_ns) <= _CLOCK_NS:
            return age_ns is not None
        if time.monotonic_ns() - begun_ns <= _QUICK_NS:
            break  # it is so old by its stamp, not because we were kept from looking
    return False


def _age_of_new_file(folder: str) -> int | None:
    """How long ago a file was made that was made just now, by its stamp; None when that tells nothing."""
    try:
        file, path = tempfile.mkstemp(prefix=".time-", dir=folder)
        try:
            stamp_ns = os.fstat(file).st_ctime_ns
            return time.time_ns() - stamp_ns if stamp_ns % 10**9 else None
        finally:
            os.close(file)
            os.unlink(path)
    except OSError:
        return None


def has_newer(root: str, git_dir: str, since: Instant) -> bool:
    """Whether anything was written, moved, deleted or committed since.

    It is told by `ctime`, which no program can set back; where times tell nothing, because a clock was set
    meanwhile or the file system keeps them badly, that counts as a change. Of the root only its `mtime`
    counts, since being renamed changes the other.
    """
    now_ns, steady_ns = _clocks()
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
