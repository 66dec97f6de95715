"""A connection that keeps the resident running while a sandboxed command needs it.

A resident cannot be started from inside a sandbox. So the process that started the command starts another
one when the resident was killed. The new socket has the same path, and the sandbox shows its folder.
"""

from __future__ import annotations

import select
import time

from landlane.errors import Stale, StoreError
from landlane.exec.resident_port import ResidentPort
from landlane.resident.messages import hold_resident
from landlane.resident.start import ensure_resident
from landlane.sessions.leases import renew_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Self

    from landlane.sessions.model import Session
    from landlane.store.interface import Store

_START_SECONDS = 20.0
_RESTART_SECONDS = 3.0
_MAX_RENEW_SECONDS = 20.0
_WAIT_MS = 500


class ResidentConnection:
    """Keeps the resident running, and a session alive, until it is closed. `path` is the socket."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._connection: socket | None = None
        self._renew_at = time.monotonic()
        self._port: ResidentPort | None = None
        self.path = ""

    @property
    def port(self) -> ResidentPort:
        """A port that leads to the resident, for commands without unix sockets; opened when needed."""
        if self._port is None:
            self._port = ResidentPort(lambda: self.path)
        return self._port

    def __enter__(self) -> Self:
        """Connect to the resident, starting one if necessary.

        Raises:
            StoreError: no resident starts.
        """
        if not self._connect(_START_SECONDS):
            raise StoreError(
                "the resident, through which a sandboxed command reaches the state, does not start",
                code="NO_RESIDENT",
                hint="look into resident.log in the folder landlane of the git directory",
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._port is not None:
            self._port.close()

    def tick(self, store: Store, session: Session) -> None:
        """Restart the resident if it is gone, and renew the session when it is time. Cheap to call often."""
        if not self._is_connected():
            self._connect(_RESTART_SECONDS)
        if time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + min(session.lease_ms / 6000, _MAX_RENEW_SECONDS)
            try:
                renew_session(store, session, wait_ms=_WAIT_MS)
            except (Stale, StoreError):
                return  # the command's own calls report it

    def _is_connected(self) -> bool:
        """Return whether the resident is there: it never writes, so a readable connection is closed."""
        if self._connection is None:
            return False
        poll = select.poll()
        poll.register(self._connection.fileno(), select.POLLIN | select.POLLHUP)
        return not poll.poll(0)

    def _connect(self, wait_seconds: float) -> bool:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        path = ensure_resident(self._state, wait_seconds)
        if not path:
            return False
        self.path = path
        self._connection = hold_resident(path)
        return True
