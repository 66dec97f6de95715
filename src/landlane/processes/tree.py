"""Process trees: find and end everything that a command started, also what left its group and session.

For the starter of a sandbox, the kernel reports which processes are in it. For others, a process belongs to a
tree when it descends from the root, is in the root's session, or has the tree's mark in its environment. A
process is identified by pid and start time, and signalled through a pidfd, so that a pid that is used again
is safe. Where the root is bubblewrap, the rest is in a pid namespace that the kernel ends together with it.
"""

from __future__ import annotations

import os
import signal
import time

from landlane.platform.process import (
    MachineProcesses,
    Process,
    ProcessInfo,
    list_pids,
    read_dead_process,
    read_environment,
    read_process,
    start_time,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # Returns which of these pids certainly belong to the tree; None when that is unknown.
    Members = Callable[[list[int]], set[int] | None]


TREE_MARK = "LANDLANE_TREE"
CHECK_MARK = "LANDLANE_BENCH"  # in the environment of every check, and of all it starts
_GRACE_SECONDS = 5.0
_LIMIT_SECONDS = 5.0  # a process that is stuck in the kernel is not waited for any longer
_POLL_SECONDS = 0.02
_FIRST_PAUSE_SECONDS = 0.0005  # most processes end at once
_QUIET_ROUNDS = 3  # on a slow machine one round may take all of the quiet time


@value
class ProcessTree:
    """A started command with everything it will ever start."""

    id: str  # in the environment of all its processes
    root: Process
    is_wrapped: bool  # the root is bubblewrap, and the rest is in a pid namespace of its own

    def is_here(self) -> bool:
        """Return whether its pids are pids of this machine, boot and container."""
        machine = MachineProcesses()
        return self.root.boot_id == machine.boot_id and self.root.namespace == machine.namespace

    def is_wrapper(self, process: ProcessInfo) -> bool:
        """Return whether a process is bubblewrap, whose end ends all others."""
        return self.is_wrapped and process.pid == self.root.pid


def record_tree(tree_id: str, pid: int, *, is_wrapped: bool) -> ProcessTree:
    """Return the tree of a child that was just started with this mark; it may have ended already."""
    machine = MachineProcesses()
    started = start_time(pid)  # it is not reaped before we wait for it
    root = Process(boot_id=machine.boot_id, namespace=machine.namespace, pid=pid, started=started)
    return ProcessTree(id=tree_id, root=root, is_wrapped=is_wrapped)


def find_members(tree: ProcessTree, is_inside: Members | None = None) -> list[ProcessInfo]:
    """Return every running process of the tree, the root among them; never this process itself."""
    if not tree.is_here():
        return []
    pids = list_pids()
    inside = is_inside(pids) if is_inside else None
    if inside is not None:  # no process can leave a sandbox
        return [found for found in map(read_process, sorted(inside)) if found is not None]
    running = {found.pid: found for found in map(read_process, pids) if found is not None}
    young = [
        found for found in running.values() if found.started >= tree.root.started and found.pid != os.getpid()
    ]
    members = {found.pid for found in young if has_mark(found.pid, tree.id)}
    root = running.get(tree.root.pid)
    if root is not None and root.started == tree.root.started:
        members.add(root.pid)
        members |= {found.pid for found in young if found.session == root.pid}
    _add_descendants(members, young)
    return [running[pid] for pid in sorted(members - {os.getpid()})]


def _add_descendants(members: set[int], young: list[ProcessInfo]) -> None:
    children: dict[int, list[int]] = {}
    for found in young:
        children.setdefault(found.parent, []).append(found.pid)
    waiting = list(members)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in members:
                members.add(child)
                waiting.append(child)


def end_tree(
    tree: ProcessTree,
    *,
    grace_seconds: float = _GRACE_SECONDS,
    is_inside: Members | None = None,
    kill_all: Callable[[], object] = lambda: None,
) -> int:
    """End the tree, with SIGTERM first and SIGKILL after the grace; return how many processes there were.

    `kill_all` kills processes that fork faster than they can be found, where the caller can do that.
    """
    members = _TreeMembers(tree, is_inside)
    if grace_seconds > 0:
        for member in members.find_running():
            if not tree.is_wrapper(member):
                _send(member, signal.SIGTERM)
                _send(member, signal.SIGCONT)
        give_up_at = time.monotonic() + grace_seconds
        while _has_others(tree, members.find_running()) and time.monotonic() < give_up_at:
            time.sleep(_POLL_SECONDS)
    members.find_running()
    kill_all()
    give_up_at, pause = time.monotonic() + _LIMIT_SECONDS, _FIRST_PAUSE_SECONDS
    while members.find_running() and time.monotonic() < give_up_at:
        if not tree.is_wrapped:  # the kernel ends a namespace in one step
            members.stop_all()
        for member in members.known.values():
            _send(member, signal.SIGKILL)
        time.sleep(pause)
        pause = min(2 * pause, _POLL_SECONDS)
    return len(members.known)


class _TreeMembers:
    """The members of a tree found so far; they stay known when their parents have ended."""

    def __init__(self, tree: ProcessTree, is_inside: Members | None) -> None:
        self.known: dict[tuple[int, int], ProcessInfo] = {}  # by pid and start time
        self._tree = tree
        self._is_inside = is_inside

    def find_running(self) -> list[ProcessInfo]:
        """Search for new members, and return the running ones."""
        for member in find_members(self._tree, self._is_inside):
            self.known[member.pid, member.started] = member
        return [member for member in self.known.values() if _is_running(member)]

    def stop_all(self) -> None:
        """Stop all before any is killed: a child forked meanwhile could not be traced."""
        stopped: set[tuple[int, int]] = set()
        while fresh := [one for one in self.find_running() if (one.pid, one.started) not in stopped]:
            for member in fresh:
                _send(member, signal.SIGSTOP)
                stopped.add((member.pid, member.started))


def kill_until_quiet(
    tree: ProcessTree, is_member: Callable[[ProcessInfo], bool], *, quiet_seconds: float
) -> int:
    """Kill members of a tree as soon as they are seen, until none was seen for a while; return how many.

    Processes that fork and end all the time are not found by reading all processes. So dead processes, and
    those older than the tree, are read only once.
    """
    if not tree.is_here():
        return 0
    killed: set[tuple[int, int]] = set()
    others = {os.getpid()}
    give_up_at = time.monotonic() + _LIMIT_SECONDS
    quiet_at, quiet_rounds = time.monotonic() + quiet_seconds, 0
    while (quiet_rounds < _QUIET_ROUNDS or time.monotonic() < quiet_at) and time.monotonic() < give_up_at:
        quiet_rounds += 1
        pids = set(list_pids())
        others &= pids
        for pid in sorted(pids - others, reverse=True):  # the youngest first: it may end at any moment
            found = read_process(pid)
            if found is None or found.started < tree.root.started:
                others.add(pid)
                dead = read_dead_process(pid) if found is None and pid != tree.root.pid else None
                if dead is None or dead.parent != os.getpid():
                    continue  # else an orphan has just ended, perhaps after forking
            elif is_member(found):
                _send(found, signal.SIGKILL)
                killed.add((found.pid, found.started))
            else:
                continue
            quiet_at, quiet_rounds = time.monotonic() + quiet_seconds, 0
    return len(killed)


def kill_marked(variable: str, text: str) -> int:
    """Kill every process of this user with this variable in its environment; return how many."""
    mark = os.fsencode(f"{variable}={text}")
    killed: set[int] = set()
    give_up_at = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < give_up_at:
        found = {pid for pid in list_pids() if pid != os.getpid() and mark in read_environment(pid)}
        if not found:
            break
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        killed |= found
        time.sleep(_POLL_SECONDS)
    return len(killed)


def count_marked() -> dict[str, int]:
    """Return the marks of trees in running processes, each with the number of its processes."""
    found: dict[str, int] = {}
    prefix = os.fsencode(f"{TREE_MARK}=")
    for pid in list_pids():
        if pid == os.getpid() or read_process(pid) is None:
            continue
        for variable in read_environment(pid):
            if variable.startswith(prefix):
                tree_id = os.fsdecode(variable[len(prefix) :])
                found[tree_id] = found.get(tree_id, 0) + 1
    return found


def has_mark(pid: int, tree_id: str) -> bool:
    """Return whether a process has the mark of a tree in its environment."""
    return os.fsencode(f"{TREE_MARK}={tree_id}") in read_environment(pid)


def signal_tree(tree: ProcessTree, number: int, is_inside: Members | None = None) -> None:
    """Send a signal to everything in the tree but bubblewrap."""
    for member in find_members(tree, is_inside):
        if not tree.is_wrapper(member):
            _send(member, number)


def _is_running(process: ProcessInfo) -> bool:
    now = read_process(process.pid)
    return now is not None and now.started == process.started


def _has_others(tree: ProcessTree, running: list[ProcessInfo]) -> bool:
    """Return whether more runs than bubblewrap itself and the first process of its namespace."""
    if not tree.is_wrapped:
        return bool(running)
    return any(tree.root.pid not in (member.pid, member.parent) for member in running)


def _send(process: ProcessInfo, number: int) -> None:
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        if _is_running(process):  # so the handle is of the process that is meant
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return
    finally:
        os.close(handle)
