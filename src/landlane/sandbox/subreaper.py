"""Being the parent of every orphan of a tree, for kernels whose sandbox cannot tell who is in it.

A tree that forks and ends all the time is never where it was seen. As long as this process adopts orphans,
the children of what was killed turn up among its own, however often they forked, until none is left.
"""

from __future__ import annotations

import ctypes
import os

from landlane.platform.proc import list_pids, read_dead_process
from landlane.processes.tree import has_mark, kill_until_quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.platform.proc import ProcessInfo
    from landlane.processes.tree import ProcessTree


_SET_ADOPTING, _IS_ADOPTING = 36, 37
_QUIET_SECONDS = 0.05  # that long none may be found
_libc = ctypes.CDLL(None, use_errno=True)


class Subreaper:
    """Adopts the orphans of one tree, from before its start until it has ended."""

    def __init__(self) -> None:
        before = ctypes.c_int(0)
        self._was_on = _libc.prctl(_IS_ADOPTING, ctypes.byref(before), 0, 0, 0) == 0 and bool(before.value)
        _libc.prctl(_SET_ADOPTING, 1, 0, 0, 0)
        self._filters = _count_filters("self")
        self._dead: set[tuple[int, int]] = set()

    def close(self) -> None:
        """Adopt no more, unless we did before."""
        if not self._was_on:
            _libc.prctl(_SET_ADOPTING, 0, 0, 0, 0)

    def kill_all(self, tree: ProcessTree) -> None:
        """Kill what is left of a tree, until none has turned up for a while."""
        kill_until_quiet(tree, lambda one: self._is_member(tree, one), quiet_seconds=_QUIET_SECONDS)
        self.bury(tree.root.pid)

    def bury(self, root: int) -> None:
        """Bury the adopted that have ended.

        What somebody in this process waits for is buried at once, or soon; so only those are taken that were
        dead already the last time. The root is waited for by whoever started it.
        """
        found = map(read_dead_process, list_pids()) if _has_dead() else ()
        dead = {
            (one.pid, one.started)
            for one in found
            if one is not None and one.parent == os.getpid() and one.pid != root
        }
        for pid, _ in dead & self._dead:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
        self._dead = dead - self._dead

    def _is_member(self, tree: ProcessTree, one: ProcessInfo) -> bool:
        """A process with the mark, or a child of ours in a sandbox; what we use ourselves has none."""
        if (one.pid, one.started) == (tree.root.pid, tree.root.started) or has_mark(one.pid, tree.id):
            return True
        return one.parent == os.getpid() and _count_filters(str(one.pid)) > self._filters


def _has_dead() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def _count_filters(pid: str) -> int:
    """How many filters of system calls a process is behind; older kernels only tell that there are some."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
    except OSError:
        return 0
    return int(lines.get(b"Seccomp_filters", lines.get(b"Seccomp", b"0")))
