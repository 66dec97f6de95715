"""Check whether a port is free, by binding it on every address a server would use."""

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
    """Return whether a server could bind the port now, without SO_REUSEADDR."""
    return all(_can_bind(family, address, port) for family, address in _ADDRESSES)


def _can_bind(family: int, address: str, port: int) -> bool:
    try:
        probe = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    except OSError:
        return family == socket.AF_INET6  # without IPv6 the port cannot be in use there
    with probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            # The port cannot be in use on an address that does not exist.
            return family == socket.AF_INET6 and error.errno in _NO_SUCH_ADDRESS
    return True
