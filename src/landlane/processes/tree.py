"""Process trees: everything a command started, found and ended, also what left its group and its session.

Who is in the sandbox of the root belongs to its tree; the kernel tells, as long as the starter lives. For
anybody else, a process belongs to it when it descends from the root, is in the root's session, or has the
tree's mark in its environment. Each is told apart by pid and start time, and signalled through a descriptor
of its own, so that a pid used again harms nobody. Where the root is bubblewrap, all the rest lives in a pid
namespace that the kernel ends together with it.
"""

from __future__ import annotations

import os
import signal
import time

from landlane.ids import new_uuid
from landlane.platform.process_identity import MachineProcesses, Process
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # Which of these pids belong to the tree for certain; nothing when that cannot be told.
    Members = Callable[[list[int]], set[int] | None]


TREE_MARK = "LANDLANE_TREE"
_GRACE_SECONDS = 5.0
_LIMIT_SECONDS = 5.0  # a process that is stuck in the kernel is not waited for any longer
_POLL_SECONDS = 0.02
_FIRST_PAUSE_SECONDS = 0.0005  # most are gone at once
_QUIET_ROUNDS = 3  # a slow machine may need all of the quiet time for one
_DEAD = (b"Z", b"X")
_STARTED = 19  # the place of the start time behind the state


@value
class ProcessInfo:
    """A process as /proc shows it."""

    pid: int
    started: int
    parent: int
    session: int


def new_tree_id() -> str:
    """A mark that nothing else in the world has."""
    return new_uuid()


def record_tree(tree_id: str, pid: int, *, is_wrapped: bool) -> ProcessTree:
    """The record of a child of ours that was just started with this mark; it may have ended already."""
    machine, fields = MachineProcesses(), _stat_fields(pid)
    started = int(fields[_STARTED]) if fields else 0  # it is not buried before we wait for it
    root = Process(boot_id=machine.boot_id, namespace=machine.namespace, pid=pid, started=started)
    return ProcessTree(id=tree_id, root=root, is_wrapped=is_wrapped)


def find_members(tree: ProcessTree, is_inside: Members | None = None) -> list[ProcessInfo]:
    """Every process of the tree that lives now, the root among them; never this process itself."""
    processes = MachineProcesses()
    if tree.root.boot_id != processes.boot_id or tree.root.namespace != processes.namespace:
        return []  # another machine, boot or container: its pids are not ours
    pids = list_processes()
    inside = is_inside(pids) if is_inside else None
    if inside is not None:  # nobody leaves a sandbox: there are no others to look for
        return [one for one in map(read_process, sorted(inside)) if one is not None]
    living = {one.pid: one for one in map(read_process, pids) if one is not None}
    young = [one for one in living.values() if one.started >= tree.root.started and one.pid != os.getpid()]
    mark = os.fsencode(f"{TREE_MARK}={tree.id}")
    found = {one.pid for one in young if _is_marked(one.pid, mark)}
    root = living.get(tree.root.pid)
    if root is not None and root.started == tree.root.started:
        found.add(root.pid)
        found |= {one.pid for one in young if one.session == root.pid}
    _add_descendants(found, young)
    return [living[pid] for pid in sorted(found - {os.getpid()})]


def end_tree(
    tree: ProcessTree,
    *,
    grace_seconds: float = _GRACE_SECONDS,
    is_inside: Members | None = None,
    kill_all: Callable[[], object] = lambda: None,
) -> int:
    """End all of it: asked first, killed after the grace; tells how many processes there were.

    `kill_all` kills what forks faster than anybody can look for it, where the caller has means to.
    """
    known: dict[tuple[int, int], ProcessInfo] = {}
    if grace_seconds > 0:
        for one in _look(tree, known, is_inside):
            if not (tree.is_wrapped and one.pid == tree.root.pid):  # bubblewrap's end is everybody's, at once
                _send(one, signal.SIGTERM)
                _send(one, signal.SIGCONT)
        give_up_at = time.monotonic() + grace_seconds
        while _has_others(tree, _look(tree, known, is_inside)) and time.monotonic() < give_up_at:
            time.sleep(_POLL_SECONDS)
    _look(tree, known, is_inside)
    kill_all()
    give_up_at, pause = time.monotonic() + _LIMIT_SECONDS, _FIRST_PAUSE_SECONDS
    while (left := _look(tree, known, is_inside)) and time.monotonic() < give_up_at:
        if not tree.is_wrapped:  # a namespace is ended by the kernel, all at once
            _stop_all(tree, left, known, is_inside)
        for one in known.values():
            _send(one, signal.SIGKILL)
        time.sleep(pause)
        pause = min(2 * pause, _POLL_SECONDS)
    return len(known)


def kill_until_quiet(
    tree: ProcessTree, is_member: Callable[[ProcessInfo], bool], *, quiet_seconds: float
) -> int:
    """Kill members of a tree as soon as they are seen, until none was for a while; tells how many there were.

    What forks and ends all the time is not found by looking at everybody: who is dead, or older than the
    tree, is looked at once only.
    """
    machine = MachineProcesses()
    if tree.root.boot_id != machine.boot_id or tree.root.namespace != machine.namespace:
        return 0
    killed: set[tuple[int, int]] = set()
    others = {os.getpid()}
    give_up_at = time.monotonic() + _LIMIT_SECONDS
    quiet_at, quiet_rounds = time.monotonic() + quiet_seconds, 0
    while (quiet_rounds < _QUIET_ROUNDS or time.monotonic() < quiet_at) and time.monotonic() < give_up_at:
        quiet_rounds += 1
        pids = set(list_processes())
        others &= pids
        for pid in sorted(pids - others, reverse=True):  # the youngest first: it may be gone in no time
            one = read_process(pid)
            if one is None or one.started < tree.root.started:
                others.add(pid)
                dead = read_dead_process(pid) if one is None and pid != tree.root.pid else None
                if dead is None or dead.parent != os.getpid():
                    continue  # else an orphan has just ended, perhaps after forking
            elif is_member(one):
                _send(one, signal.SIGKILL)
                killed.add((one.pid, one.started))
            else:
                continue
            quiet_at, quiet_rounds = time.monotonic() + quiet_seconds, 0
    return len(killed)


def count_marked() -> dict[str, int]:
    """The marks that living processes bear, and how many bear each."""
    found: dict[str, int] = {}
    prefix = os.fsencode(f"{TREE_MARK}=")
    for pid in list_processes():
        if pid == os.getpid() or read_process(pid) is None:
            continue
        for variable in _environment(pid):
            if variable.startswith(prefix):
                tree_id = os.fsdecode(variable[len(prefix) :])
                found[tree_id] = found.get(tree_id, 0) + 1
    return found


def signal_tree(tree: ProcessTree, number: int, is_inside: Members | None = None) -> None:
    """Send a signal to everything in the tree but bubblewrap, whose end would be everybody's."""
    for one in find_members(tree, is_inside):
        if not (tree.is_wrapped and one.pid == tree.root.pid):
            _send(one, number)


def _look(
    tree: ProcessTree, known: dict[tuple[int, int], ProcessInfo], is_inside: Members | None
) -> list[ProcessInfo]:
    """What lives of the tree, and of what was seen to belong to it before its parents ended."""
    for one in find_members(tree, is_inside):
        known[one.pid, one.started] = one
    return [
        one
        for one in known.values()
        if (now := read_process(one.pid)) is not None and now.started == one.started
    ]


def _stop_all(
    tree: ProcessTree,
    found: list[ProcessInfo],
    known: dict[tuple[int, int], ProcessInfo],
    is_inside: Members | None,
) -> None:
    """Stop them before any is killed: one that forks meanwhile would leave a child nobody can trace to it."""
    stopped: set[tuple[int, int]] = set()
    while fresh := [one for one in found if (one.pid, one.started) not in stopped]:
        for one in fresh:
            _send(one, signal.SIGSTOP)
            stopped.add((one.pid, one.started))
        found = _look(tree, known, is_inside)


def _has_others(tree: ProcessTree, living: list[ProcessInfo]) -> bool:
    """Whether more lives than bubblewrap itself and the first process of its namespace."""
    if not tree.is_wrapped:
        return bool(living)
    return any(one.pid != tree.root.pid and one.parent != tree.root.pid for one in living)


def _add_descendants(found: set[int], young: list[ProcessInfo]) -> None:
    children: dict[int, list[int]] = {}
    for one in young:
        children.setdefault(one.parent, []).append(one.pid)
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)


def list_processes() -> list[int]:
    """The pids of this machine, or of this container."""
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    return [int(name) for name in names if name.isdecimal()]


def read_process(pid: int) -> ProcessInfo | None:
    """A process, unless it is gone, or dead and only not yet buried."""
    fields = _stat_fields(pid)
    return _seen(pid, fields) if fields and fields[0] not in _DEAD else None


def read_dead_process(pid: int) -> ProcessInfo | None:
    """A process that is dead and not yet buried."""
    fields = _stat_fields(pid)
    return _seen(pid, fields) if fields and fields[0] in _DEAD else None


def _seen(pid: int, fields: list[bytes]) -> ProcessInfo:
    return ProcessInfo(pid=pid, started=int(fields[_STARTED]), parent=int(fields[1]), session=int(fields[3]))


def _stat_fields(pid: int) -> list[bytes]:
    """What /proc says of a process, from its state on; nothing when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            raw = file.read()
    except OSError:
        return []
    # The name in parentheses may hold spaces and parentheses of its own: count from the last one.
    return raw[raw.rindex(b")") + 2 :].split()


def has_mark(pid: int, tree_id: str) -> bool:
    """Whether a process has the mark of a tree in its environment."""
    return _is_marked(pid, os.fsencode(f"{TREE_MARK}={tree_id}"))


def _is_marked(pid: int, mark: bytes) -> bool:
    return mark in _environment(pid)


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []  # gone, or another user's


def _send(one: ProcessInfo, number: int) -> None:
    try:
        handle = os.pidfd_open(one.pid)
    except OSError:
        return
    try:
        now = read_process(one.pid)
        if now is not None and now.started == one.started:  # the handle is of the process we mean
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return
    finally:
        os.close(handle)


@value
class ProcessTree:
    """A started command with everything it will ever start."""

    id: str  # stands in the environment of all of it
    root: Process
    is_wrapped: bool  # the root is bubblewrap, and all the rest lives in a pid namespace of its own
