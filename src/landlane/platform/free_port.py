"""Whether a port of this machine can be had now: by binding it, on every address a server would use."""

from __future__ import annotations

import errno
import socket

_NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_ADDRESSES = (
    (socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET, "0.0.0.0"),  # noqa: S104 - bound for a moment, never listened on
    (socket.AF_INET6, "::1"),
)


def is_port_free(port: int) -> bool:
    """Bind the port as a plain server would, without asking for a used address again, and let it go."""
    return all(_can_bind(family, address, port) for family, address in _ADDRESSES)


def _can_bind(family: int, address: str, port: int) -> bool:
    try:
        probe = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    except OSError:
        return family == socket.AF_INET6  # this machine has no IPv6 at all: nothing of it can be in use
    with probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            # Without the address itself nobody can use the port there either.
            return family == socket.AF_INET6 and error.errno in _NO_SUCH_ADDRESS
    return True
