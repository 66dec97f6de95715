"""Listen for changes in PostgreSQL on a separate connection, which is restored after an outage."""

from __future__ import annotations

import contextlib
import time
from typing import cast

import psycopg

from landlane.clock import SystemClock
from landlane.errors import StoreTransient
from landlane.ids import short_id
from landlane.store.postgres.database import connect
from landlane.store.wake import WakeReason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, Protocol

    from landlane.clock import Clock
    from landlane.store.interface import Transaction

    class ListenedStore(Protocol):
        """What a listener needs of its store."""

        url: str
        wait_ms: int
        clock: Clock

        @property
        def channel(self) -> str: ...

        def change(self, work: Callable[[Transaction], Any], *, is_durable: bool = True) -> Any: ...


_LISTENER_MS = 30_000
_RETRY_SECONDS = 0.5  # pause before connecting again to a server that went away


_ALL = "*"  # more keys were freed than a notification can name
_LONGEST_PAYLOAD = 7000  # the server allows 8000 bytes
_PRECEDENCE = (WakeReason.TIMEOUT, WakeReason.ENTRY, WakeReason.FREED)


def notification(reason: WakeReason, freed: Collection[str]) -> str:
    """Return the payload that says what happened, with the keys that were freed."""
    payload = " ".join([reason, *sorted(freed)])
    return payload if len(payload) <= _LONGEST_PAYLOAD else f"{reason} {_ALL}"


def parse_notification(payload: str, key: str) -> WakeReason:
    """Return what a payload means to a listener that watches a key, or none; TIMEOUT if nothing."""
    first, *freed = payload.split(" ")
    if key:
        return WakeReason.FREED if key in freed or _ALL in freed else WakeReason.TIMEOUT
    return WakeReason.FREED if first == WakeReason.FREED else WakeReason.ENTRY


class PostgresListener:
    """A separate connection that receives notifications."""

    def __init__(self, store: ListenedStore) -> None:
        self._store = store
        self._id = short_id("l")
        self._key = ""
        self._connection = self._connect()
        self._beat_at = 0
        self._beat()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._store.url, self._store.wait_ms)
        connection.execute(cast("Any", f"LISTEN {self._store.channel}"))
        return connection

    def _beat(self) -> None:
        """Record that this listener is alive: writers notify only if there is one."""
        now = self._store.clock.boot_ms() if self._store.clock.is_real() else SystemClock().boot_ms()
        if now < self._beat_at:
            return
        self._beat_at = now + _LISTENER_MS // 3

        def record(tx: Transaction) -> None:
            tx.run("listener_beat", id=self._id, alive_until=tx.now + _LISTENER_MS)

        self._store.change(record, is_durable=False)

    def watch(self, key: str) -> None:
        """Wake up only when this key is freed; for an empty one, whenever something happens."""
        self._key = key

    def wait(self, timeout_seconds: float) -> WakeReason:
        """Sleep until a notification arrives or the time is over; FREED takes precedence over ENTRY."""
        reason = WakeReason.TIMEOUT
        give_up_at = time.monotonic() + timeout_seconds
        try:
            self._beat()
            if self._connection.closed:
                self._connection = self._connect()
                return WakeReason.FREED  # notifications may have been missed
            left_seconds = max(timeout_seconds, 0.001)
            while reason == WakeReason.TIMEOUT and left_seconds > 0:
                notes = self._connection.notifies(timeout=left_seconds, stop_after=1)
                reasons = [parse_notification(note.payload, self._key) for note in notes]
                reason = max(reasons, key=_PRECEDENCE.index, default=WakeReason.TIMEOUT)
                left_seconds = give_up_at - time.monotonic()
        except (psycopg.Error, StoreTransient):
            self._connection.close()
            time.sleep(min(timeout_seconds, _RETRY_SECONDS))  # the caller looks by itself
        return reason

    def close(self) -> None:
        """Stop listening; an unreachable store removes the listener later by itself."""
        self._connection.close()
        with contextlib.suppress(StoreTransient):
            self._store.change(lambda tx: tx.run("listener_drop", id=self._id), is_durable=False)
