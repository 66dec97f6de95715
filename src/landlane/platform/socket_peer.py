"""Identify the peer of a Unix socket, as the kernel reports it: user, process, sandboxed or not."""

from __future__ import annotations

import os
import socket

from landlane.values import value

_FORM_BYTES = 12  # struct ucred: pid, uid and gid, four bytes each
_NAMESPACES = ("user", "mnt", "net")


@value
class Peer:
    """The process that connected."""

    pid: int
    uid: int


def peer_of(connection: socket.socket) -> Peer:
    """Return the process that connected; its pid is 0 when it is in a namespace we cannot see."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _FORM_BYTES)
    pid, uid = (int.from_bytes(raw[at : at + 4], "little") for at in (0, 4))
    return Peer(pid=pid, uid=uid)


def is_same_user(peer: Peer) -> bool:
    """Return whether a peer is our own user or root."""
    return peer.uid in (os.geteuid(), 0)


def is_sandboxed(pid: int) -> bool:
    """Return whether a process is in a sandbox that we are not in; True when that is unknown.

    A process cannot hide it: the no-new-privileges flag cannot be cleared, and a namespace cannot be left.
    """
    try:
        if _has_no_new_privileges(pid) and not _has_no_new_privileges(os.getpid()):
            return True
        return any(os.stat(f"/proc/{pid}/ns/{name}").st_ino != _own(name) for name in _NAMESPACES)
    except (OSError, ValueError):
        return True


def _own(namespace: str) -> int:
    return os.stat(f"/proc/self/ns/{namespace}").st_ino


def _has_no_new_privileges(pid: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("NoNewPrivs:"):
                return line.split()[1] == "1"
    return False
