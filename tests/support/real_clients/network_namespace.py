"""A network with nothing but loopback, in which programs can be started and a server of this process listens.

A small holder process keeps the namespace. It opens listening sockets inside and hands them over, so that the
server itself stays in the caller's process; programs enter by `nsenter`. The holder ends with its caller.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

START_SECONDS = 10.0

_HOLDER = Path(__file__).with_name("network_namespace_holder.py")
# Real root needs no user namespace. Others keep their own user in theirs where `unshare` can do that: clients
# treat root in a special way.
_WAYS = (("--net",), ("--map-current-user", "--keep-caps", "--net"), ("--map-root-user", "--net"))


class Namespace:
    """An open namespace, or, where none can be had, the machine's own network: see `is_isolated`."""

    def __init__(self) -> None:
        self._holder: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._way: tuple[str, ...] = ()
        self.reason = ""
        for way in _WAYS if os.geteuid() == 0 else _WAYS[1:]:
            if self._hold(way):
                break

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_isolated(self) -> bool:
        """Whether programs started here can reach loopback only."""
        return self._holder is not None

    def listen(self) -> socket.socket:
        """A socket that listens on a free port of 127.0.0.1 inside."""
        if self._channel is None:
            return socket.create_server(("127.0.0.1", 0))
        self._channel.send(b"s")
        _, (descriptor, *_), _, _ = socket.recv_fds(self._channel, 1, 1)
        return socket.socket(fileno=descriptor)

    def enter(self) -> list[str]:
        """The words to put before a command, for it to run inside."""
        if self._holder is None:
            return []
        user = [] if self._way == ("--net",) else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self._holder.pid}", *user, "--net", "--"]

    def close(self) -> None:
        """End the namespace; programs inside keep running without a way to the server."""
        if self._holder is not None and self._channel is not None:
            self._channel.close()
            self._holder.wait(START_SECONDS)
        self._holder = self._channel = None

    def _hold(self, way: tuple[str, ...]) -> bool:
        ours, theirs = socket.socketpair()
        with theirs:
            ours.settimeout(START_SECONDS)
            holder = [sys.executable, "-I", "-S", str(_HOLDER), str(theirs.fileno())]
            try:
                process = subprocess.Popen(
                    ["unshare", *way, "--", *holder],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
            except FileNotFoundError:
                ours.close()
                self.reason = "unshare is not there"
                return False
        assert process.stderr is not None
        with process.stderr:
            try:
                is_ready = ours.recv(1) == b"r"
            except OSError:
                is_ready = False
            if is_ready:
                self._holder, self._channel, self._way, self.reason = process, ours, way, ""
                return True
            ours.close()
            process.kill()
            self.reason = process.stderr.read().decode(errors="replace").strip() or "no answer"
            process.wait()
        return False
