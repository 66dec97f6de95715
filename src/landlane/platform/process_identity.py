"""Processes of this machine, each told apart by boot, pid namespace, pid and start time together."""

from __future__ import annotations

import os

from landlane.clock import read_boot_id
from landlane.errors import Malformed
from landlane.ids import digest
from landlane.values import value

_MOST_ANCESTORS = 64


class MachineProcesses:
    """What /proc tells; where there is no /proc, `ps` is not asked and nothing is taken for gone.

    Who acts on behalf of another process gives that one's pid as `caller`: ancestors are those of it. 0 means
    that no process stands for the caller.
    """

    def __init__(self, caller: int | None = None) -> None:
        self._caller = caller
        self._boot_id = ""
        self._namespace = ""
        self._machine = ""

    @property
    def machine(self) -> str:
        """A name for this machine that differs from every other machine's."""
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
        """The pid namespace: inside a container the same pid is another process."""
        if not self._namespace:
            try:
                self._namespace = os.readlink("/proc/self/ns/pid")
            except OSError:
                self._namespace = "none"
        return self._namespace

    def current(self) -> Process:
        return self.identify(os.getpid())

    def identify(self, pid: int) -> Process:
        """The process that has this pid now.

        Raises:
            Malformed: there is none.
        """
        found = _parent_and_start(pid)
        if found is None:
            raise Malformed(
                f"there is no process {pid}", code="NO_PROCESS", hint="give the pid of a running process"
            )
        return Process(boot_id=self.boot_id, namespace=self.namespace, pid=pid, started=found[1])

    def ancestry(self) -> list[Process]:
        chain: list[Process] = []
        pid = os.getppid() if self._caller is None else _parent_of(self._caller)
        while pid > 0 and len(chain) < _MOST_ANCESTORS:
            found = _parent_and_start(pid)
            if found is None:
                break
            chain.append(Process(boot_id=self.boot_id, namespace=self.namespace, pid=pid, started=found[1]))
            pid = found[0]
        return chain

    def is_gone(self, process: Process) -> bool:
        if not os.path.isdir("/proc/self"):
            return False
        if process.boot_id != self.boot_id or process.namespace != self.namespace:
            return False  # another machine, boot or container: only its lease can tell
        found = _parent_and_start(process.pid)
        return found is None or found[1] != process.started

    def is_port_free(self, port: int) -> bool:
        from landlane.platform.free_port import is_port_free  # noqa: PLC0415 - few commands need sockets

        return is_port_free(port)


def _parent_of(pid: int) -> int:
    found = _parent_and_start(pid) if pid > 0 else None
    return found[0] if found else 0


def _parent_and_start(pid: int) -> tuple[int, int] | None:
    """The parent and the start time (in clock ticks since boot) of a process; nothing when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            raw = file.read()
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses of its own: count from the last one.
    fields = raw[raw.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):  # dead, only not yet buried by its parent
        return None
    return int(fields[1]), int(fields[19])


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
    """One run of a process, told apart from every other: a pid alone is used again."""

    boot_id: str
    namespace: str
    pid: int
    started: int
