"""A fork server without threads, forked early in a process that will have threads.

A process with threads cannot fork safely, and starting an interpreter takes longer than most commands. So
this server is forked before the first thread starts, loads what the work needs, and then only forks.
`fork_server` is the other kind: a program of its own, for a process that has the store open.
"""

from __future__ import annotations

import os
import signal
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Work = Callable[[list[int]], None]

_MOST_CHILDREN = 128
_MOST_FILES = 4


class PreforkServer:
    """Pass open files to children that do `work` with them; children continue when the starter ends.

    When there are too many children, `spare` is called with the files instead.
    """

    def __init__(self, work: Work, spare: Work, warm_up: Callable[[], None], closes: Sequence[int]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for file in closes:  # first: a lock must not outlive the process that took it
                    os.close(file)
                ours.close()
                _serve(theirs, work, spare, warm_up)
            finally:
                os._exit(0)
        theirs.close()
        self._control = ours

    def hand_over(self, files: Sequence[int]) -> bool:
        """Let a child work with these files, which stay open here; return whether the server still runs."""
        try:
            socket.send_fds(self._control, [b"w"], list(files))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End the server; running children continue."""
        self._control.close()
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            return


def _serve(control: socket.socket, work: Work, spare: Work, warm_up: Callable[[], None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    warm_up()
    children = 0
    while True:
        told, files, _, _ = socket.recv_fds(control, 8, _MOST_FILES)
        if not told:
            return
        children -= _reap(children)
        if children >= _MOST_CHILDREN:
            spare(files)
        elif os.fork() == 0:
            _do(control, work, files)
        else:
            children += 1
        for file in files:
            os.close(file)


def _do(control: socket.socket, work: Work, files: list[int]) -> None:
    """A child's whole life."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        control.close()
        os.setsid()  # what ends the group of whoever started us is not meant for it
        work(files)
    finally:
        os._exit(0)


def _reap(children: int) -> int:
    """Reap ended children; return how many."""
    ended = 0
    while ended < children and os.waitpid(-1, os.WNOHANG)[0]:
        ended += 1
    return ended
