"""Adopt the orphans of a process tree, for kernels that cannot tell which processes are in a sandbox.

Processes that fork and end all the time escape a search. As long as this process adopts orphans, the children
of killed processes become its own, however often they forked, until none is left.
"""

from __future__ import annotations

import ctypes
import os

from landlane.platform.process import list_pids, read_dead_process
from landlane.processes.tree import has_mark, kill_until_quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.platform.process import ProcessInfo
    from landlane.processes.tree import ProcessTree


_SET_ADOPTING, _IS_ADOPTING = 36, 37
_QUIET_SECONDS = 0.05  # how long no process may be found
_libc = ctypes.CDLL(None, use_errno=True)


class Subreaper:
    """Adopts the orphans of one process tree, from before its start until it has ended."""

    def __init__(self) -> None:
        before = ctypes.c_int(0)
        self._was_on = _libc.prctl(_IS_ADOPTING, ctypes.byref(before), 0, 0, 0) == 0 and bool(before.value)
        _libc.prctl(_SET_ADOPTING, 1, 0, 0, 0)
        self._filters = _count_filters("self")
        self._dead: set[tuple[int, int]] = set()

    def close(self) -> None:
        """Stop adopting, unless this process did so before."""
        if not self._was_on:
            _libc.prctl(_SET_ADOPTING, 0, 0, 0, 0)

    def kill_all(self, tree: ProcessTree) -> None:
        """Kill what is left of a tree, until no process was found for a while."""
        kill_until_quiet(tree, lambda process: self._is_member(tree, process), quiet_seconds=_QUIET_SECONDS)
        self.reap(tree.root.pid)

    def reap(self, root: int) -> None:
        """Reap adopted processes that have ended, except the root, whose starter waits for it.

        Other code of this process reaps its own children at once or soon. So a process is reaped here only if
        it was dead at the last call, too.
        """
        found = map(read_dead_process, list_pids()) if _has_dead() else ()
        dead = {
            (process.pid, process.started)
            for process in found
            if process is not None and process.parent == os.getpid() and process.pid != root
        }
        for pid, _ in dead & self._dead:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
        self._dead = dead - self._dead

    def _is_member(self, tree: ProcessTree, process: ProcessInfo) -> bool:
        """Return whether a process has the tree's mark, or is a child of ours with more seccomp filters."""
        is_root = (process.pid, process.started) == (tree.root.pid, tree.root.started)
        if is_root or has_mark(process.pid, tree.id):
            return True
        return process.parent == os.getpid() and _count_filters(str(process.pid)) > self._filters


def _has_dead() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def _count_filters(pid: str) -> int:
    """Return how many seccomp filters a process has; older kernels only tell whether there is one."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
    except OSError:
        return 0
    return int(lines.get(b"Seccomp_filters", lines.get(b"Seccomp", b"0")))
