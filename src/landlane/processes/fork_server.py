"""A helper process that forks a child for each order it gets, with everything loaded and nothing open.

A process that has a SQLite file open must not fork children that open it, too: they would inherit what the
library believes to have locked, and not the locks. So the helper is a program of its own that never opens the
store, and its children open it for themselves. They tell what they do by a pipe, whose end is their end. They
outlive the helper, and whoever started it.
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

from landlane.processes.child import Child
from landlane.processes.tree import read_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Tell = Callable[[dict[str, Any]], None]
    Work = Callable[[dict[str, Any], Tell], None]

_READ = 65_536
_MOST_ORDER = 65_536
_MOST_KEPT = 1_000_000  # of what nobody has read yet
_ENDING_SECONDS = 5.0


class ForkedChild:
    """A child of the helper: what it tells, and whether it has ended."""

    def __init__(self, file: int) -> None:
        self.file = file  # -1 once it tells nothing more
        self.pid = 0
        self._handle = -1
        self._partial = b""
        self._told: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        """What it has told since; never waits."""
        self._take()
        told, self._told = self._told, []
        return told

    def _take(self) -> None:
        while self.file >= 0:
            try:
                got = os.read(self.file, _READ)
            except BlockingIOError:
                break
            if not got:
                self._close()
                break
            self._partial += got
        *lines, self._partial = self._partial.split(b"\n")
        for line in lines:
            told = json.loads(line)
            if told.get("event") == "pid":
                self._know(int(told["pid"]), int(told["started"]))
            else:
                self._told.append(told)

    def _know(self, pid: int, started: int) -> None:
        self.pid = pid
        with contextlib.suppress(OSError):  # it has ended already
            self._handle = os.pidfd_open(pid)
        now = read_process(pid)
        if self._handle >= 0 and (now is None or now.started != started):
            os.close(self._handle)  # the number is somebody else's by now
            self._handle = -1

    @property
    def signs(self) -> list[int]:
        """The files that are readable when it has something to tell, or has ended."""
        return [file for file in (self.file if self.file >= 0 else self._handle,) if file >= 0]

    def has_ended(self) -> bool:
        """Whether it has ended, and all that it told was read.

        One that was killed closes its pipe a moment before it is gone, and until then it may seem alive to
        whoever looks after what it held.
        """
        self._take()
        return self.file < 0 and not self._told and self._is_gone(0)

    def signal(self, number: int) -> None:
        """Send it a signal; one that has ended does not mind."""
        self._take()
        if self._handle >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; tells whether it came in time."""
        self._take()
        is_gone = self._is_gone(seconds)
        self._take()
        return self.file < 0 and is_gone

    def _is_gone(self, seconds: float) -> bool:
        if self._handle >= 0:
            if not select.select([self._handle], [], [], seconds)[0]:
                return False
            os.close(self._handle)
            self._handle = -1
        return True

    def _close(self) -> None:
        os.close(self.file)
        self.file = -1


class ForkServer:
    """The starter's side: has a helper, another one when it was killed, and hands it orders."""

    def __init__(self, command: Sequence[str], cwd: str, common: dict[str, Any]) -> None:
        """`common` is what every order says."""
        self._common = common
        self._command = list(command)
        self._cwd = cwd
        self._child: Child | None = None
        self._control: socket.socket | None = None

    def begin(self, order: dict[str, Any]) -> ForkedChild:
        """Let a child do this order.

        Raises:
            OSError: no helper can be had.
        """
        ours, theirs = os.pipe()
        try:
            self._hand_over(json.dumps({**self._common, **order}).encode(), theirs)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(ours, False)
        return ForkedChild(ours)

    def _hand_over(self, order: bytes, file: int) -> None:
        for _ in range(3):
            control = self._control or self._start()
            try:
                socket.send_fds(control, [order], [file])
            except OSError:  # it was killed: have another
                self._end_helper()
                continue
            return
        raise OSError("the helper that starts workers does not run")

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = Child(self._command, cwd=self._cwd, streams=(theirs.fileno(), 2, 2))
        self._control = ours
        return ours

    def _end_helper(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._child is not None:
            self._child.wait(_ENDING_SECONDS)
            self._child = None

    def close(self) -> None:
        """Let the helper end; its children go on."""
        self._end_helper()


def serve_orders(work: Work) -> None:
    """The helper's whole life: fork a child for each order that comes, until nobody can send one any more."""
    control = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody has to bury them
    while True:
        try:
            told, files, _, _ = socket.recv_fds(control, _MOST_ORDER, 1)
        except InterruptedError:
            continue
        if not told or not files:
            return
        if os.fork() == 0:
            _live(control, work, json.loads(told), files[0])
        os.close(files[0])


def _live(control: socket.socket, work: Work, order: dict[str, Any], file: int) -> None:
    """A child's whole life."""
    code = 1
    try:
        control.close()
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.setsid()  # what is sent to the group of whoever started us is not meant for it
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        tell = _teller(file)
        here = read_process(os.getpid())
        tell({"event": "pid", "pid": os.getpid(), "started": here.started if here else 0})
        work(order, tell)
        code = 0
    except SystemExit:
        code = 0
    except BaseException:  # noqa: BLE001 - a child ends here, whatever happens, and never in its parent's code
        with contextlib.suppress(OSError):
            sys.stderr.write(traceback.format_exc())
            sys.stderr.flush()
    finally:
        os._exit(code)


def _teller(file: int) -> Tell:
    """Tells by a pipe, and never waits for whoever should read it: that one may have been stopped."""
    os.set_blocking(file, False)
    kept = bytearray()

    def tell(told: dict[str, Any]) -> None:
        if len(kept) < _MOST_KEPT:
            kept.extend(json.dumps(told, default=str).encode() + b"\n")
        with contextlib.suppress(OSError):  # it is full, or nobody listens any more: the work goes on
            while kept:
                del kept[: os.write(file, kept)]

    return tell
