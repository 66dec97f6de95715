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
    from collections.abc import Callable
    from typing import Any, Protocol

    from landlane.clock import Clock
    from landlane.store.interface import Transaction

    class ListenedStore(Protocol):
        """What a listener needs of its store."""

        url: str
        wait_ms: int
        clock: Clock
        repository: str

        @property
        def channel(self) -> str: ...

        def statement(self, name: str) -> str: ...

        def change(self, work: Callable[[Transaction], Any], *, is_durable: bool = True) -> Any: ...


_LISTENER_MS = 30_000
_RETRY_SECONDS = 0.5  # pause before connecting again to a server that went away
_PRECEDENCE = (WakeReason.TIMEOUT, WakeReason.ENTRY, WakeReason.FREED)


class PostgresListener:
    """A separate connection that receives notifications.

    A key has a channel of its own, and writers announce only keys that are watched: so a change costs the
    same however many wait for others.
    """

    def __init__(self, store: ListenedStore) -> None:
        self._store = store
        self._id = short_id("l")
        self._key = ""
        self._connection = self._connect()
        self._beat_at = 0
        self._beat()

    @property
    def _channel(self) -> str:
        return f"{self._store.channel}_{self._key}" if self._key else self._store.channel

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._store.url, self._store.wait_ms)
        connection.execute(cast("Any", f"LISTEN {self._channel}"))
        return connection

    def _beat(self) -> None:
        """Record that this listener is alive: writers notify only if there is one."""
        now = self._store.clock.boot_ms() if self._store.clock.is_real() else SystemClock().boot_ms()
        if now < self._beat_at:
            return
        self._beat_at = now + _LISTENER_MS // 3

        def record(tx: Transaction) -> None:
            tx.run("listener_beat", id=self._id, key=self._key, alive_until=tx.now + _LISTENER_MS)

        self._store.change(record, is_durable=False)

    def watch(self, key: str) -> None:
        """Wake up only when this key is freed; for an empty one, whenever something happens."""
        if key == self._key:
            return
        self._key = key
        row = {"repository": self._store.repository, "id": self._id, "key": key}
        try:
            self._connection.execute(cast("Any", f"UNLISTEN *; LISTEN {self._channel}"))
            self._connection.execute(cast("Any", self._store.statement("listener_watch")), row)
        except psycopg.Error:
            self._connection.close()  # `wait` connects again
            self._beat_at = 0

    def wait(self, timeout_seconds: float) -> WakeReason:
        """Sleep until a notification arrives or the time is over; FREED takes precedence over ENTRY."""
        reason = WakeReason.TIMEOUT
        give_up_at = time.monotonic() + timeout_seconds
        try:
            self._beat()
            if self._connection.closed:
                self._connection = self._connect()
                return WakeReason.FREED  # notifications may have been missed
            notes = self._connection.notifies(timeout=max(give_up_at - time.monotonic(), 0.001), stop_after=1)
            reasons = [
                WakeReason.FREED if note.payload == WakeReason.FREED else WakeReason.ENTRY for note in notes
            ]
            reason = max(reasons, key=_PRECEDENCE.index, default=WakeReason.TIMEOUT)
        except (psycopg.Error, StoreTransient):
            self._connection.close()
            time.sleep(min(timeout_seconds, _RETRY_SECONDS))  # the caller looks by itself
        return reason

    def close(self) -> None:
        """Stop listening; an unreachable store removes the listener later by itself."""
        self._connection.close()
        with contextlib.suppress(StoreTransient):
            self._store.change(lambda tx: tx.run("listener_drop", id=self._id), is_durable=False)
