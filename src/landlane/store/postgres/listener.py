"""Hearing of changes in PostgreSQL: a connection of its own, which outlasts a server that goes away."""

from __future__ import annotations

import contextlib
import time
from typing import cast

import psycopg

from landlane.clock import SystemClock
from landlane.errors import StoreTransient
from landlane.ids import short_id
from landlane.store.postgres.schema import connect
from landlane.store.wake import ENTRY, FREED

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

        @property
        def channel(self) -> str: ...

        def change(self, work: Callable[[Transaction], Any], *, is_durable: bool = True) -> Any: ...


_LISTENER_MS = 30_000
_AGAIN_SECONDS = 0.5  # before a server that went away is asked again


class PostgresListener:
    """A connection of its own that hears notifications."""

    def __init__(self, store: ListenedStore) -> None:
        self._store = store
        self._id = short_id("l")
        self._connection = self._connect()
        self._beat_at = 0
        self._beat()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._store.url, self._store.wait_ms)
        connection.execute(cast("Any", f"LISTEN {self._store.channel}"))
        return connection

    def _beat(self) -> None:
        """Say that somebody listens, so that writers take the trouble to notify."""
        now = self._store.clock.boot_ms() if self._store.clock.is_real() else SystemClock().boot_ms()
        if now < self._beat_at:
            return
        self._beat_at = now + _LISTENER_MS // 3

        def say(tx: Transaction) -> None:
            tx.run("listener_beat", id=self._id, alive_until=tx.now + _LISTENER_MS)

        self._store.change(say, is_durable=False)

    def wait(self, timeout_seconds: float) -> str:
        """Sleep until something happened: `freed` wins over `entry`; empty when the time was up."""
        heard = ""
        try:
            self._beat()
            if self._connection.closed:
                self._connection = self._connect()
                return FREED  # nobody knows what was missed
            for note in self._connection.notifies(timeout=max(timeout_seconds, 0.001), stop_after=1):
                heard = FREED if FREED in (heard, note.payload) else ENTRY
        except (psycopg.Error, StoreTransient):
            self._connection.close()
            time.sleep(min(timeout_seconds, _AGAIN_SECONDS))  # it is away; who waits looks for itself
        return heard

    def close(self) -> None:
        """Stop listening; a store that is away forgets us by itself."""
        self._connection.close()
        with contextlib.suppress(StoreTransient):
            self._store.change(lambda tx: tx.run("listener_drop", id=self._id), is_durable=False)
