"""Identify processes of this machine by boot, pid namespace, pid and start time together."""

from __future__ import annotations

import os

from landlane.clock import read_boot_id
from landlane.errors import Malformed
from landlane.ids import digest
from landlane.platform.proc import read_process
from landlane.values import value

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
