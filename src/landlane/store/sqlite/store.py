"""The store in one SQLite file: many processes, one writer at a time, readers that never wait.

Writers queue at a file lock (see store/file_lock.py) before they begin. The file is in WAL mode with
`synchronous=FULL`: a commit survives a power cut. Time is the machine's boot clock plus a base kept in the
store; after a restart of the machine the base changes so that the store's time continues, and the epoch of
the tokens is raised.
"""

from __future__ import annotations

import _thread
import os
import sqlite3
import time

from landlane.clock import SystemClock
from landlane.patterns.pattern import ancestors, below
from landlane.store.journal_chain import EMPTY_CHAIN_HASH, JournalEntry, encode_data, hash_entry
from landlane.store.sqlite import database
from landlane.store.sqlite.database import open_database, store_moved_error
from landlane.store.statements import read_statements, spread
from landlane.store.wake import WakeReason, WakeSockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from landlane.clock import Clock
    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.store.interface import Actor, Listener, QuickGrant, Snapshot, Transaction
    from landlane.values import Row

    T = TypeVar("T")

_abandoned: list[sqlite3.Connection] = []  # connections of a parent process, neither used nor closed here
_ANCESTOR_NAMES = [f"ancestors_{index}" for index in range(110)]


class SqliteStore:
    """One SQLite file, for one repository."""

    def __init__(
        self,
        path: str,
        repository: str,
        *,
        clone: str = "",
        clock: Clock | None = None,
        wait_ms: int = 30_000,
        checkpoint_pages: int = 1000,
        may_create: bool = True,
    ) -> None:
        self.path = path
        self.folder = os.path.dirname(path)
        self.activity_folder = os.path.join(self.folder, "activity")
        self._clone = clone
        self.repository = repository
        self.clock: Clock = clock or SystemClock()
        self.wait_seconds = wait_ms / 1000
        self.statements = read_statements("sqlite")
        self._checkpoint_pages = checkpoint_pages
        self._near: dict[tuple[str, int], str] = {}
        self._guard = _thread.RLock()
        self._wakes = WakeSockets(os.path.join(self.folder, "wake"))
        self._open(may_create=may_create)

    def _open(self, *, may_create: bool = False) -> None:
        self._pid = os.getpid()
        with database.translating_errors(self.path):
            self.db, self._lock, self.base = open_database(
                self.path, self.clock, self.wait_seconds, may_create=may_create
            )
            self._file = file_at(self.path)
            self.db.execute(f"PRAGMA wal_autocheckpoint={self._checkpoint_pages}")
            self.db.execute("PRAGMA synchronous=FULL")

    @property
    def is_shared(self) -> bool:
        """Whether the file is outside the git directory of this clone, so that others may use it, too."""
        return not os.path.realpath(self.path).startswith(os.path.realpath(self._clone) + "/")

    def now(self) -> int:
        """Return the store's time."""
        return self.base + self.clock.boot_ms()

    def wall_of(self, at: int) -> int:
        return self.clock.wall_ms() + at - self.now()

    def change(
        self,
        work: Callable[[Transaction], T],
        *,
        areas: Mapping[str, bool] | None = None,
        is_durable: bool = True,
        wait_ms: int | None = None,
    ) -> T:
        del areas  # there is only one writer at a time
        with self._guard, database.translating_errors(self.path):
            self._leave_parent()
            wait_seconds = self.wait_seconds if wait_ms is None else min(wait_ms / 1000, self.wait_seconds)
            deadline = time.monotonic() + wait_seconds
            self._acquire_lock(wait_seconds)
            try:
                change = self._run(work, deadline, is_durable)
            finally:
                self._lock.release()
        if change.has_freed or change.freed:
            self._wakes.wake(WakeReason.FREED, change.freed)
        elif change.has_recorded:
            self._wakes.wake(WakeReason.ENTRY)
        return change.result

    def _acquire_lock(self, wait_seconds: float) -> None:
        """Wait for the lock of the file that is there now."""
        while True:
            if not self._lock.acquire(wait_seconds):
                raise database.busy_error(self.path, wait_seconds)
            if self._file == file_at(self.path):
                return
            self._lock.release()
            self._follow_file()

    def _run(
        self, work: Callable[[Transaction], Any], deadline: float, is_durable: bool
    ) -> SqliteTransaction:
        execute = self.db.execute
        if not is_durable:
            execute("PRAGMA synchronous=NORMAL")
        try:
            # The file lock excludes other Landlane processes; another program may still lock the database.
            database.retry_while_busy(lambda: execute("BEGIN IMMEDIATE"), deadline, self.path)
            try:
                change = SqliteTransaction(self)
                change.result = work(change)
                execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    execute("ROLLBACK")
                raise
        finally:
            if not is_durable:
                execute("PRAGMA synchronous=FULL")
        return change

    def view(self, look: Callable[[Snapshot], T]) -> T:
        with self._guard, database.translating_errors(self.path):
            self._leave_parent()
            if self._file != file_at(self.path):
                self._follow_file()
            deadline = time.monotonic() + self.wait_seconds
            snapshot = SqliteSnapshot(self)
            while True:
                try:
                    self.db.execute("BEGIN")
                    return look(snapshot)
                except sqlite3.OperationalError as error:
                    # Only the first reader after a crash can meet a lock, while it recovers the log.
                    if not database.is_busy(error) or time.monotonic() >= deadline:
                        raise
                    time.sleep(0.001)
                finally:
                    if self.db.in_transaction:
                        self.db.execute("COMMIT")

    def stop_writers(self, tx: Transaction) -> None:
        """Block other writers until the transaction ends: there are none."""

    def take_uncontested(
        self, session: Actor, patterns: Sequence[Pattern], mode: str, ttl_ms: int, task: str, note: str
    ) -> QuickGrant | None:
        return None  # the usual check costs no round trip here

    def entries(self, after: int, limit: int = 1000) -> list[JournalEntry]:
        rows = self.view(lambda snapshot: snapshot.all("entries_after", after=after, limit=limit))
        return [JournalEntry.from_row(row) for row in rows]

    def last_entry(self) -> JournalEntry | None:
        row = self.view(lambda snapshot: snapshot.one("entry_last"))
        return JournalEntry.from_row(row) if row else None

    def listen(self) -> Listener:
        return self._wakes.listen()

    def find_damage(self) -> str:
        """Return what is wrong with the file, if anything; this reads all of it."""
        with self._guard, database.translating_errors(self.path):
            rows = [str(row["integrity_check"]) for row in self.db.execute("PRAGMA integrity_check(5)")]
        return "" if rows == ["ok"] else "; ".join(rows)

    def describe(self) -> dict[str, Any]:
        """Return where the store is, for people."""
        mode = self.db.execute("PRAGMA journal_mode").fetchone()["journal_mode"]
        return {
            "kind": f"SQLite {sqlite3.sqlite_version} ({mode})",
            "place": self.path,
            "bytes": os.path.getsize(self.path),
        }

    def near_statement(self, name: str, count: int) -> str:
        """Return a statement with parameters for so many ancestors."""
        found = self._near.get((name, count))
        if found is None:
            found, _ = spread(self.statements[name], {"ancestors": [""] * count})
            self._near[name, count] = found
        return found

    def _leave_parent(self) -> None:
        """After a fork, open everything again: the connection and the lock belong to the parent."""
        if os.getpid() != self._pid:
            _abandoned.append(self.db)
            self._open()

    def _follow_file(self) -> None:
        """Open the file that a rebuild or a restore put in place of ours."""
        db, lock = self.db, self._lock
        self._open()  # if this fails, the next call tries again
        db.close()
        lock.close()

    def close(self) -> None:
        with self._guard:
            if os.getpid() == self._pid:
                self.db.close()
                self._lock.close()
                self._wakes.close()


class SqliteSnapshot:
    """One consistent state of the file."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._execute = store.db.execute
        self._statements = store.statements
        self.now = store.now()

    def one(self, statement: str, /, **parameters: object) -> Row | None:
        return self._cursor(statement, parameters).fetchone()

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        return self._cursor(statement, parameters).fetchall()

    def _cursor(self, statement: str, parameters: dict[str, Any]) -> sqlite3.Cursor:
        text = self._statements[statement]
        if ":*" in text:
            text, parameters = spread(text, parameters)
        parameters["repository"] = self._store.repository
        parameters["now"] = self.now
        return self._execute(text, parameters)

    def near(
        self, statement: str, alternatives: Sequence[Alternative], session: str = "", **parameters: object
    ) -> list[Row]:
        rows: list[Row] = []
        for alternative in alternatives:
            keys = ancestors(alternative.key)
            low, high = below(alternative.key)
            given: dict[str, Any] = dict(zip(_ANCESTOR_NAMES, keys, strict=False))
            given["repository"] = self._store.repository
            given["now"] = self.now
            given["session"] = session
            given["low"] = low
            given["high"] = high
            given.update(parameters)
            rows += self._execute(self._store.near_statement(statement, len(keys)), given).fetchall()
        return rows


class SqliteTransaction(SqliteSnapshot):
    """One write transaction."""

    result: Any

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self.has_freed = False
        self.freed: set[str] = set()
        self.touched: dict[str, None] = {}
        self.has_recorded = False
        self._head: tuple[int, str, int] | None = None
        row = self.one("opening")
        assert row is not None
        self.epoch = int(row["epoch"])
        self.has_lapsed = bool(row["has_lapsed"])
        self.has_waiters = bool(row["has_waiters"])
        if row["moved_to"] is not None:
            raise store_moved_error(store.path, row["moved_to"])

    def run(self, statement: str, /, **parameters: object) -> int:
        return self._cursor(statement, parameters).rowcount

    def head(self) -> tuple[int, str, int]:
        """Return position, hash and number of the newest entry, including those of this transaction.

        Entries that were imported may have numbers above their positions; see `continue_numbers`.
        """
        if self._head is None:
            row = self.one("head")
            self._head = (row["position"], row["hash"], row["number"]) if row else (0, EMPTY_CHAIN_HASH, 0)
        return self._head

    def continue_numbers(self) -> None:
        """Number the next entry above all others; from then on the newest entry has the highest number."""
        row = self.one("journal_continue")
        position, previous, _ = self.head()
        self._head = position, previous, (row["done"] if row else 0) or 0

    def lock_areas(self, areas: Mapping[str, bool]) -> None:
        """Do nothing: there is only one writer."""

    def set_savepoint(self) -> None:
        """Do nothing: there are no row locks."""

    def undo_to_savepoint(self) -> None:
        """Do nothing: there are no row locks."""

    def next_numbers(self, count: int) -> list[int]:
        number = self.head()[2]
        return list(range(number + 1, number + 1 + count))

    def record(
        self, kind: str, agent: str, session: str, facts: dict[str, Any], number: int | None = None
    ) -> None:
        position, previous, last = self.head()
        position += 1
        if number not in (None, last + 1):
            raise AssertionError("entries must be recorded in the order of their numbers")
        number = last + 1
        at = self._store.clock.wall_ms()
        data = encode_data(facts)
        sealed = hash_entry(previous, position, number, at, kind, agent, session, data)
        self.run(
            "entry_add",
            position=position,
            number=number,
            at=at,
            kind=kind,
            agent=agent,
            session=session,
            data=data,
            hash=sealed,
        )
        self._head = (position, sealed, number)
        self.has_recorded = True


def file_at(path: str) -> tuple[int, int] | None:
    """Return what distinguishes this file from another one at the same path."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
