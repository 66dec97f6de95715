"""A fork server: a helper process that has everything loaded and forks a child for each order it gets.

Starting an interpreter takes longer than most commands. But a process with threads cannot fork safely, and
one with an open SQLite file must not fork children that open it, too: they would inherit the library's memory
of locks without the locks. So the helper has no threads and no open store. It is forked before the first
thread starts (`fork_helper`), or is a program of its own (`start_helper`). Children continue when the helper
or its starter ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import traceback

from landlane.platform.process import read_process
from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Report = Callable[[dict[str, Any]], None]

_MOST_CHILDREN = 128  # for a server that can refuse orders
_MOST_ORDER = 65_536
_MOST_FILES = 4
_READ = 65_536
_MOST_UNREAD = 1_000_000
_END_SECONDS = 5.0


class Helper:
    """A running helper."""

    def __init__(self, control: socket.socket, wait: Callable[[], object]) -> None:
        self._control = control
        self._wait = wait

    def send(self, order: bytes, files: Sequence[int]) -> bool:
        """Let a child do an order with these files, which stay open here; return whether the helper runs."""
        try:
            socket.send_fds(self._control, [order], list(files))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End the helper; its children continue."""
        self._control.close()
        with contextlib.suppress(ChildProcessError):
            self._wait()


def fork_helper(serve: Callable[[socket.socket], None], closes: Sequence[int]) -> Helper:
    """Fork a helper from this process, which must not have threads yet."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            for file in closes:  # first: a lock must not outlive the process that took it
                os.close(file)
            ours.close()
            serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    return Helper(ours, lambda: os.waitpid(pid, 0))


def start_helper(command: Sequence[str], cwd: str) -> Helper:
    """Start a program that serves orders from its standard input."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        child = Child(command, cwd=cwd, streams=(theirs.fileno(), 2, 2))
    return Helper(ours, lambda: child.wait(_END_SECONDS))


def serve_orders(
    control: socket.socket,
    work: Callable[[bytes, list[int]], None],
    refuse: Callable[[list[int]], None] | None = None,
) -> None:
    """Fork a child for each order until the other end is closed; with `refuse`, not too many at once."""
    children = 0

    def reap(_: int, __: object) -> None:
        nonlocal children
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                children -= 1

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, reap)
    while True:
        order, files, _, _ = socket.recv_fds(control, _MOST_ORDER, _MOST_FILES)
        if not order:
            return
        if refuse is not None and children >= _MOST_CHILDREN:
            refuse(files)
        elif os.fork() == 0:
            _run_child(control, work, order, files)
        else:
            children += 1
        for file in files:
            os.close(file)


def _run_child(
    control: socket.socket, work: Callable[[bytes, list[int]], None], order: bytes, files: list[int]
) -> None:
    code = 1
    try:
        control.close()
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.setsid()  # a signal to the starter's group is not meant for the child
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        work(order, files)
        code = 0
    except SystemExit:
        code = 0
    except BaseException:  # noqa: BLE001 - a child must never return into the code of its parent
        with contextlib.suppress(OSError):
            sys.stderr.write(traceback.format_exc())
            sys.stderr.flush()
    finally:
        os._exit(code)


class ForkServer:
    """Starts children that report by a pipe, and starts another helper when one was killed."""

    def __init__(self, command: Sequence[str], cwd: str, common: dict[str, Any]) -> None:
        """`common` is part of every order."""
        self._common = common
        self._command = list(command)
        self._cwd = cwd
        self._helper: Helper | None = None

    def begin(self, order: dict[str, Any]) -> ForkedChild:
        """Let a child do this order.

        Raises:
            OSError: no helper can be started.
        """
        ours, theirs = os.pipe()
        try:
            self._send(json.dumps({**self._common, **order}).encode(), theirs)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(ours, False)
        return ForkedChild(ours)

    def _send(self, order: bytes, file: int) -> None:
        for _ in range(3):
            self._helper = self._helper or start_helper(self._command, self._cwd)
            if self._helper.send(order, [file]):
                return
            self.close()
        raise OSError("the helper that starts workers does not run")

    def close(self) -> None:
        """End the helper; its children continue."""
        if self._helper is not None:
            self._helper.close()
            self._helper = None


def serve_reporting(work: Callable[[dict[str, Any], Report], None]) -> None:
    """Serve the orders of a `ForkServer`, in the program that it starts."""

    def do(order: bytes, files: list[int]) -> None:
        report = pipe_reporter(files[0])
        own = read_process(os.getpid())
        report({"event": "pid", "pid": os.getpid(), "started": own.started if own else 0})
        work(json.loads(order), report)

    serve_orders(socket.socket(fileno=os.dup(0)), do)


def pipe_reporter(file: int) -> Report:
    """Return a function that writes reports into a pipe and never waits for a reader that was stopped."""
    os.set_blocking(file, False)
    unwritten = bytearray()

    def report(event: dict[str, Any]) -> None:
        if len(unwritten) < _MOST_UNREAD:
            unwritten.extend(json.dumps(event, default=str).encode() + b"\n")
        with contextlib.suppress(OSError):  # the pipe is full or has no reader: the work goes on
            while unwritten:
                del unwritten[: os.write(file, unwritten)]

    return report


class ForkedChild:
    """A child of the helper: what it reports, and whether it has ended."""

    def __init__(self, file: int) -> None:
        self.file = file  # -1 once the child has closed its end
        self.pid = 0
        self._handle = -1
        self._partial = b""
        self._reports: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        """Return the reports since the last call; never waits."""
        self._receive()
        reports, self._reports = self._reports, []
        return reports

    def _receive(self) -> None:
        while self.file >= 0:
            try:
                data = os.read(self.file, _READ)
            except BlockingIOError:
                break
            if not data:
                os.close(self.file)
                self.file = -1
            self._partial += data
        *lines, self._partial = self._partial.split(b"\n")
        for line in lines:
            report = json.loads(line)
            if report.get("event") == "pid":
                self._identify(int(report["pid"]), int(report["started"]))
            else:
                self._reports.append(report)

    def _identify(self, pid: int, started: int) -> None:
        self.pid = pid
        with contextlib.suppress(OSError):  # it has ended already
            self._handle = os.pidfd_open(pid)
        now = read_process(pid)
        if self._handle >= 0 and (now is None or now.started != started):
            os.close(self._handle)  # the pid belongs to another process by now
            self._handle = -1

    @property
    def readable_files(self) -> list[int]:
        """The files that become readable when the child has reported or ended."""
        return [file for file in (self.file if self.file >= 0 else self._handle,) if file >= 0]

    def has_ended(self) -> bool:
        """Return whether the child has ended and all its reports were read.

        A killed process closes its pipe a moment before it is gone; until then it may still count as alive.
        """
        self._receive()
        return self.file < 0 and not self._reports and self._is_gone(0)

    def signal(self, number: int) -> None:
        """Send a signal, unless the child has ended."""
        self._receive()
        if self._handle >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def wait(self, seconds: float) -> bool:
        """Wait for the end; return whether it came in time."""
        self._receive()
        is_gone = self._is_gone(seconds)
        self._receive()
        return self.file < 0 and is_gone

    def _is_gone(self, seconds: float) -> bool:
        if self._handle >= 0:
            if not select.select([self._handle], [], [], seconds)[0]:
                return False
            os.close(self._handle)
            self._handle = -1
        return True
