"""Processes of this machine: read them from /proc, and tell whether a pid is still the same process."""

from __future__ import annotations

import os
import time

from landlane.clock import read_boot_id
from landlane.errors import Malformed
from landlane.ids import digest
from landlane.values import value

_DEAD = (b"Z", b"X")
_STARTED = 19  # the position of the start time behind the state


@value
class ProcessInfo:
    """A process as /proc shows it; `started` is in clock ticks since boot."""

    pid: int
    started: int
    parent: int
    session: int


def can_see_processes() -> bool:
    """Return whether there is a /proc with processes."""
    return os.path.isdir("/proc/self/fd")


def list_pids() -> list[int]:
    """Return the pids of this machine, or of this container."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def read_process(pid: int) -> ProcessInfo | None:
    """Return a process, unless it is gone, or dead and not reaped yet."""
    return _read_stat(pid, is_dead=False)


def read_dead_process(pid: int) -> ProcessInfo | None:
    """Return a process that is dead and not reaped yet."""
    return _read_stat(pid, is_dead=True)


def _read_stat(pid: int, *, is_dead: bool | None = None) -> ProcessInfo | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            raw = file.read()
    except OSError:
        return None
    # The name in parentheses may contain spaces and parentheses: count from the last one.
    fields = raw[raw.rindex(b")") + 2 :].split()
    if is_dead is not None and (fields[0] in _DEAD) != is_dead:
        return None
    return ProcessInfo(pid=pid, started=int(fields[_STARTED]), parent=int(fields[1]), session=int(fields[3]))


def start_time(pid: int) -> int:
    """Return when a process started, dead or not, in clock ticks since boot; 0 when it is gone."""
    found = _read_stat(pid)
    return found.started if found else 0


def age_seconds(pid: int) -> float:
    """Return how long a process has been running."""
    started = start_time(pid) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def read_name(pid: int) -> str:
    """Return the name of a process; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_environment(pid: int) -> list[bytes]:
    """Return the environment of a process, as `NAME=text`; empty when it is gone or another user's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def working_folder(pid: int) -> str:
    """Return the working folder of a process; empty when that is hidden."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def open_files(pid: int) -> set[str]:
    """Return the paths that a process has open.

    Raises:
        PermissionError: it belongs to another user.
        OSError: it has ended.
    """
    found: set[str] = set()
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            found.add(os.readlink(f"{folder}/{name}"))
        except FileNotFoundError:
            continue  # closed meanwhile
    return found


def owner_of(pid: int) -> int:
    """Return the user that a process belongs to; -1 when it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


def read_umask() -> int:
    """Return the umask of this process without changing it for a moment."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1], 8) for line in file if line.startswith("Umask:")), 0o022)
    except OSError:
        return 0o022


def list_mounts() -> list[str]:
    """Return where file systems are mounted, as this process sees it."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            fields = [line.split(b" ") for line in file]
    except OSError:
        return []
    # Spaces, tabs, line ends and backslashes in names are written as octal numbers.
    points = (line[4] for line in fields if len(line) > 4)
    return [os.fsdecode(point.decode("unicode_escape").encode("latin-1")) for point in points]


_MOST_ANCESTORS = 64


class MachineProcesses:
    """Reads processes from /proc; without /proc, no process counts as gone.

    `caller` is the pid of the process on whose behalf this one acts; `ancestry` returns its parents. With 0
    there is no such process.
    """

    def __init__(self, caller: int | None = None) -> None:
        self._caller = caller
        self._boot_id = ""
        self._namespace = ""
        self._machine = ""

    @property
    def machine(self) -> str:
        """A name that no other machine has."""
        if not self._machine:
            host = os.uname().nodename[:32] or "host"
            self._machine = f"{host}-{digest(_machine_id() + host)[:8]}"
        return self._machine

    @property
    def boot_id(self) -> str:
        """This run of the machine."""
        if not self._boot_id:
            self._boot_id = read_boot_id()
        return self._boot_id

    @property
    def namespace(self) -> str:
        """The pid namespace: in a container, the same pid is another process."""
        if not self._namespace:
            try:
                self._namespace = os.readlink("/proc/self/ns/pid")
            except OSError:
                self._namespace = "none"
        return self._namespace

    def current(self) -> Process:
        return self.identify(os.getpid())

    def identify(self, pid: int) -> Process:
        """Return the process that has this pid now.

        Raises:
            Malformed: there is none.
        """
        found = read_process(pid)
        if found is None:
            raise Malformed(
                f"there is no process {pid}", code="NO_PROCESS", hint="give the pid of a running process"
            )
        return self._process(pid, found.started)

    def _process(self, pid: int, started: int) -> Process:
        return Process(boot_id=self.boot_id, namespace=self.namespace, pid=pid, started=started)

    def ancestry(self) -> list[Process]:
        """Return the parents of the caller, nearest first."""
        chain: list[Process] = []
        pid = os.getppid()
        if self._caller is not None:
            caller = read_process(self._caller) if self._caller > 0 else None
            pid = caller.parent if caller else 0
        while pid > 0 and len(chain) < _MOST_ANCESTORS and (found := read_process(pid)) is not None:
            chain.append(self._process(pid, found.started))
            pid = found.parent
        return chain

    def is_gone(self, process: Process) -> bool:
        if not os.path.isdir("/proc/self"):
            return False
        if process.boot_id != self.boot_id or process.namespace != self.namespace:
            return False  # another machine, boot or container: only its lease shows its end
        found = read_process(process.pid)
        return found is None or found.started != process.started

    def is_port_free(self, port: int) -> bool:
        from landlane.platform.free_port import is_port_free  # noqa: PLC0415 - few commands need sockets

        return is_port_free(port)


def _machine_id() -> str:
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                if text := file.read().strip():
                    return text
        except OSError:
            continue
    return ""


@value
class Process:
    """One run of a process, distinct from every other, since a pid is used again."""

    boot_id: str
    namespace: str
    pid: int
    started: int
