"""The program that runs a check: it adopts all processes that the check starts, and ends them with it.

Run as `python -I -S reaper.py GATE COMMAND…`. A process that leaves its group and session and clears its
environment becomes a child of this one when its parent ends, because this process is a subreaper. Nothing of
the check is left when this process ends, also when its starter does: then the pipe GATE is closed.
"""

import ctypes
import os
import select
import signal
import sys
import time

_SET_SUBREAPER = 36
_LIMIT_SECONDS = 10.0  # a process that is stuck in the kernel is not waited for any longer
_FIRST_PAUSE_SECONDS = 0.0005
_PAUSE_SECONDS = 0.01


def main() -> None:
    """Run the command, end what it leaves, and end as it did."""
    gate, command = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(gate, False)
    # Where the kernel cannot do this, the starter still finds processes by a mark in their environment.
    ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if not child:
        _start(command)
    status = _wait(child, gate)
    _end_all()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _start(command: list[str]) -> None:
    """Become the command, in a session of its own."""
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.execvp(command[0], command)  # noqa: S606 - a list of arguments, no shell
    finally:
        os._exit(127)


def _wait(child: int, gate: int) -> int:
    """Wait for the end of the command, and end it if the gate is closed; return its status."""
    handle = os.pidfd_open(child)
    ready, _, _ = select.select([handle, gate], [], [])
    if handle not in ready:
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _end_all() -> None:
    """Kill children until there are none: those of killed ones become ours."""
    give_up_at, pause = time.monotonic() + _LIMIT_SECONDS, _FIRST_PAUSE_SECONDS
    while time.monotonic() < give_up_at:
        for pid in _children():
            try:
                os.kill(pid, signal.SIGKILL)
            except PermissionError:
                continue  # it runs as another user, by sudo for instance
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_SECONDS)


def _children() -> list[int]:
    """Return the children of this process, dead ones included."""
    own = str(os.getpid()).encode()
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = file.read().rpartition(b") ")[2].split(b" ", 2)[1]
            except OSError:
                continue
            if parent == own:
                found.append(int(name))
    return found


if __name__ == "__main__":
    main()
