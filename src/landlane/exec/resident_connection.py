"""The door of a sandbox: the resident's socket, behind which there is somebody as long as a command runs.

From inside nobody can start a resident. So whoever started the command does, when one was killed; the socket
is then found again at the same place, because the sandbox shows the folder it lies in.
"""

from __future__ import annotations

import select
import time

from landlane.errors import Stale, StoreError
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
_AGAIN_SECONDS = 3.0
_MOST_SILENT_SECONDS = 20.0
_WAIT_MS = 500


class Door:
    """Keeps the resident alive as long as it is open, and the session of whoever is behind it."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._connection: socket | None = None
        self._renew_at = time.monotonic()
        self.path = ""

    def __enter__(self) -> Self:
        """Have a resident, and show it.

        Raises:
            StoreError: none starts.
        """
        if not self._open(_START_SECONDS):
            raise StoreError(
                "the resident, through which a sandboxed command reaches the state, does not start",
                code="NO_RESIDENT",
                hint="look into resident.log in the folder landlane of the git directory",
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def tick(self, store: Store, session: Session) -> None:
        """See that the resident is there, and show that the session lives; nothing of it is dear."""
        if not self._is_held():
            self._open(_AGAIN_SECONDS)
        if time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + min(session.lease_ms / 6000, _MOST_SILENT_SECONDS)
            try:
                renew_session(store, session, wait_ms=_WAIT_MS)
            except (Stale, StoreError):
                return  # its own commands will tell it

    def _is_held(self) -> bool:
        """Whether the resident at the other end of our line is still there: it says nothing until it goes."""
        if self._connection is None:
            return False
        poll = select.poll()
        poll.register(self._connection.fileno(), select.POLLIN | select.POLLHUP)
        return not poll.poll(0)

    def _open(self, wait_seconds: float) -> bool:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        found = ensure_resident(self._state, wait_seconds)
        if not found:
            return False
        self.path = found
        self._connection = hold_resident(found)
        return True
