"""A loopback port that passes requests of a sandboxed command on to the resident.

It is used where the kernel cannot limit which unix sockets are reached, so that all of them are refused. Only
who knows the token is served, and the resident treats every request as one from a sandbox.
"""

from __future__ import annotations

import hmac
import secrets
import selectors
import socket
import threading
from contextlib import suppress

from landlane.resident.messages import GUEST, LOOPBACK, TOKEN_LENGTH, port_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_CONNECTIONS = 64
_TOKEN_SECONDS = 5.0
_READ_BYTES = 65_536


class ResidentPort:
    """Listens until it is closed. `address` is for the variable that leads callers to the resident."""

    def __init__(self, find_socket: Callable[[], str]) -> None:
        """Start listening. `find_socket` returns the resident's socket, which may be replaced meanwhile."""
        self._find_socket = find_socket
        self._token = secrets.token_hex(TOKEN_LENGTH // 2)
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._listener = socket.create_server((LOOPBACK, 0), backlog=_MOST_CONNECTIONS)
        self.port: int = self._listener.getsockname()[1]
        self.address = port_address(self.port, self._token)
        threading.Thread(target=self._serve, name="landlane-port", daemon=True).start()

    def close(self) -> None:
        """Stop listening; open connections end by themselves."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            if not self._free.acquire(blocking=False):
                caller.close()
                continue
            threading.Thread(target=self._pass_on, args=(caller,), name="landlane-port", daemon=True).start()

    def _pass_on(self, caller: socket.socket) -> None:
        try:
            with caller, suppress(OSError):
                caller.settimeout(_TOKEN_SECONDS)
                token = b""
                while len(token) < TOKEN_LENGTH and (data := caller.recv(TOKEN_LENGTH - len(token))):
                    token += data
                if hmac.compare_digest(token, self._token.encode()):
                    self._connect(caller)
        finally:
            self._free.release()

    def _connect(self, caller: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX) as resident:
            resident.settimeout(_TOKEN_SECONDS)
            resident.connect(self._find_socket())
            resident.sendall(GUEST)
            for connection in (caller, resident):
                connection.settimeout(None)
            _copy_both_ways(caller, resident)


def _copy_both_ways(one: socket.socket, other: socket.socket) -> None:
    """Copy until either side has ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(one, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(_READ_BYTES)
                if not data:
                    return
                key.data.sendall(data)
