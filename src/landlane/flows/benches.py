"""The queue's own checkouts, in which it tests: found, and removed when nobody wants them any more."""

from __future__ import annotations

import contextlib
import os

from landlane.flows.checking import LOCK, PLACES_BEGIN, lock_alone
from landlane.git.removing import remove_checkout, worktree_entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.layout import Checkout


def find_benches(home: Checkout) -> list[str]:
    """The checkouts that the queue made for itself; what is in them is nobody's work."""
    if not home.common_dir:
        return []
    named = (path for _, path in worktree_entries(home) if os.path.basename(path).startswith(PLACES_BEGIN))
    return [path for path in named if os.path.isfile(path + LOCK)]


def remove_benches(home: Checkout) -> list[str]:
    """Remove those that nobody tests in just now; tells which."""
    done: list[str] = []
    for path in find_benches(home):
        lock = lock_alone(path + LOCK)
        if lock < 0:
            continue
        try:
            remove_checkout(home, path)
            os.unlink(path + LOCK)
        finally:
            os.close(lock)
        done.append(path)
        with contextlib.suppress(OSError):  # others lie there, too
            os.rmdir(os.path.dirname(path))
    return done
