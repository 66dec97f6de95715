"""The store in PostgreSQL, for several machines: the server's clock, and locks only where claims may overlap.

A transaction locks the keys from the root to each of its keys (shared) and those keys themselves (exclusive),
so that disjoint work commits in parallel and shares disk writes. Journal entries are sealed afterwards, by
the next reader, in the order in which they became visible.
"""

from __future__ import annotations

import _thread
import os
import time
from typing import cast

import psycopg

from landlane.clock import SystemClock
from landlane.errors import StoreError, StoreTransient
from landlane.ids import digest
from landlane.patterns.pattern import ancestors, areas_of, below
from landlane.redact import show_url
from landlane.store.interface import QuickGrant
from landlane.store.journal_chain import EMPTY_CHAIN_HASH, JournalEntry, encode_data, hash_entry
from landlane.store.postgres.database import connect, is_retriable, prepare_schema, translate
from landlane.store.postgres.listener import PostgresListener
from landlane.store.postgres.prepared_call import PreparedCall
from landlane.store.sqlite.database import store_moved_error
from landlane.store.statements import for_psycopg, read_statements
from landlane.store.wake import WakeReason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from landlane.clock import Clock
    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.store.interface import Actor, Listener, Snapshot, Transaction
    from landlane.values import Row

    T = TypeVar("T")


_MOST_TRIES = 8
_SEAL_PAGE = 2000
_RETRY_SECONDS = 0.1
_QUICK_SECONDS = 0.5  # a connection attempt that failed sooner was refused, it did not time out
# Read once: translating them takes milliseconds, and a process may open many stores.
_STATEMENTS = {name: for_psycopg(text) for name, text in read_statements("postgres").items()}
_NEED_NOW = frozenset(name for name, text in _STATEMENTS.items() if "%(now)s" in text and name != "opening")
_abandoned: list[object] = []  # connections of a parent process, neither used nor closed here


class PostgresStore:
    """One repository in a PostgreSQL database."""

    is_shared = True
    activity_folder = ""  # files of this machine would not be seen on others

    def __init__(
        self,
        url: str,
        repository: str,
        *,
        folder: str = "",
        clock: Clock | None = None,
        wait_ms: int = 30_000,
        may_create: bool = True,
    ) -> None:
        self.url = url
        self.folder = folder
        self.repository = repository
        self.clock: Clock = clock or SystemClock()
        self.wait_ms = wait_ms
        self.channel = f"landlane_{digest(repository)[:16]}"
        self._guard = _thread.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._quick: PreparedCall | None = None
        self._pid = os.getpid()
        self._may_create = may_create
        self._reach(prepare=True)

    def _reach(self, *, prepare: bool = False) -> psycopg.Connection[Any]:
        """Return the connection of this process; connect again after a failure or a fork."""
        if self._connection is not None and os.getpid() != self._pid:
            _abandoned.append(self._connection)
            self._connection = None
        if self._connection is None or self._connection.closed:
            self._pid = os.getpid()
            began = time.monotonic()
            try:
                self._connection = self._connect(prepare=prepare)
            except StoreTransient:
                # Retry if the server refused the connection, as when it starts; not if it does not answer.
                if time.monotonic() - began > _QUICK_SECONDS:
                    raise
                time.sleep(_RETRY_SECONDS)
                self._connection = self._connect(prepare=prepare)
        return self._connection

    def _connect(self, *, prepare: bool) -> psycopg.Connection[Any]:
        connection = connect(self.url, self.wait_ms)
        if prepare:
            try:
                prepare_schema(connection, self.url, may_create=self._may_create)
            except BaseException:
                connection.close()
                raise
        return connection

    def execute(self, statement: str, parameters: dict[str, Any]) -> psycopg.Cursor[Any]:
        """Run a named statement."""
        parameters["repository"] = self.repository
        return self._reach().execute(cast("Any", _STATEMENTS[statement]), parameters)

    def given_now(self) -> int | None:
        """Return the time of a test's clock; None if the server's time counts."""
        return None if self.clock.is_real() else self.clock.boot_ms()

    def wall_of(self, at: int) -> int:
        return at

    def change(
        self,
        work: Callable[[Transaction], T],
        *,
        areas: Mapping[str, bool] | None = None,
        is_durable: bool = True,
        wait_ms: int | None = None,
    ) -> T:
        begin = "BEGIN" if is_durable else "BEGIN; SET LOCAL synchronous_commit = off"
        if wait_ms is not None:
            begin += f"; SET LOCAL lock_timeout = {min(wait_ms, self.wait_ms)}"
        with self._guard:
            for tries in range(_MOST_TRIES):
                try:
                    change = self._run(work, areas or {}, begin)
                    break
                except _Again as again:
                    if tries == _MOST_TRIES - 1:
                        raise translate(again.cause, self.url) from again.cause
            else:
                raise AssertionError("unreachable")
            has_freed = change.has_freed or bool(change.freed)
            if change.wakes and (has_freed or change.has_recorded):
                self._notify(WakeReason.FREED if has_freed else WakeReason.ENTRY, change.freed)
        return change.result

    def _run(
        self, work: Callable[[Transaction], Any], areas: Mapping[str, bool], begin: str
    ) -> PostgresTransaction:
        is_committing = False
        try:
            connection = self._reach()
            connection.execute(cast("Any", begin))
            if areas:
                self.lock(areas)
            change = PostgresTransaction(self)
            change.result = work(change)
            is_committing = True
            connection.execute("COMMIT")
        except psycopg.Error as error:
            self._roll_back()
            if is_retriable(error) and not is_committing:
                raise _Again(error) from error
            if is_committing and self._connection is not None and self._connection.closed:
                raise StoreTransient(
                    "the database was lost in the middle of a commit: it may or may not have happened",
                    code="STORE_AMBIGUOUS",
                    hint="look with `landlane claims`, then ask again: asking twice does no harm",
                ) from error
            raise translate(error, self.url) from error
        except BaseException:
            self._roll_back()
            raise
        return change

    def _roll_back(self) -> None:
        if self._connection is not None and not self._connection.closed:
            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self._connection.close()

    def lock(self, areas: Mapping[str, bool]) -> None:
        """Lock areas until the transaction ends."""
        keys, alone = self._locks(areas)
        self.execute("lock_areas", {"keys": keys, "alone": alone})

    def statement(self, name: str) -> str:
        """Return a named statement, for another connection."""
        return _STATEMENTS[name]

    def command(self, text: str) -> None:
        """Run a command without parameters."""
        self._reach().execute(cast("Any", text))

    def _locks(self, areas: Mapping[str, bool]) -> tuple[list[int], list[bool]]:
        """Return the advisory lock numbers of areas, sorted, and whether to lock each exclusively."""
        numbers: dict[int, bool] = {}
        for key, alone in areas.items():
            number = int.from_bytes(
                bytes.fromhex(digest(f"{self.repository}\0{key}")[:16]), "big", signed=True
            )
            numbers[number] = numbers.get(number, False) or alone
        keys = sorted(numbers)
        return keys, [numbers[key] for key in keys]

    def _notify(self, reason: WakeReason, freed: Collection[str] = ()) -> None:
        try:
            keys = ["", *sorted(freed)]
            self.execute("notify", {"channel": self.channel, "keys": keys, "payload": str(reason)})
        except (psycopg.Error, StoreError):
            return  # listeners also look by themselves

    def view(self, look: Callable[[Snapshot], T]) -> T:
        with self._guard:
            for tries in range(_MOST_TRIES):
                try:
                    self._reach().execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    result = look(PostgresSnapshot(self))
                    self._reach().execute("COMMIT")
                    return result
                except psycopg.Error as error:
                    self._roll_back()
                    if not is_retriable(error) or tries == _MOST_TRIES - 1:
                        raise translate(error, self.url) from error
                except BaseException:
                    self._roll_back()
                    raise
        raise AssertionError("unreachable")

    def stop_writers(self, tx: Transaction) -> None:
        """Block other writers until the transaction ends, and seal the journal."""
        # The transaction is idle while another store is filled, which may take long.
        self.command("SET LOCAL idle_in_transaction_session_timeout = 0")
        tx.run("stop_writers")
        while _seal_page(tx):
            pass

    def take_uncontested(
        self, session: Actor, patterns: Sequence[Pattern], mode: str, ttl_ms: int, task: str, note: str
    ) -> QuickGrant | None:
        alternatives = [alternative for pattern in patterns for alternative in pattern.alternatives]
        keys = [alternative.key for alternative in alternatives]
        is_plain = all(alternative.rest is None for alternative in alternatives)
        is_distinct = len(set(keys)) == len(patterns) == len(keys) and "" not in keys
        if not self.clock.is_real() or not is_plain or not is_distinct:
            return None
        locks, alone = self._locks(areas_of(patterns))
        facts = [
            encode_data(
                {"kind": one.kind, "mode": mode, "note": note, "pattern": one.text, "task": task}
            ).removesuffix("}")
            for one in patterns
        ]
        answer = self._call_quickly(
            {
                "repository": self.repository,
                "session": session.id,
                "agent": session.agent,
                "locks": _array(map(str, locks)),
                "alone": _array(map(str, alone)),
                "ancestors": _text_array({up for key in keys for up in ancestors(key)}),
                "keys": _text_array(keys),
                "patterns": _text_array(one.text for one in patterns),
                "kinds": _text_array(one.kind for one in patterns),
                "facts": _text_array(f'{one},"token":' for one in facts),  # the function adds the rest
                "mode": mode,
                "ttl_ms": ttl_ms,
                "task": task,
                "note": note,
            }
        )
        if answer is None:
            return None  # the usual way waits for locks, checks, and finds out what is wrong
        granted_at, seen_at, has_listeners, *tokens = answer
        if has_listeners:
            self._notify(WakeReason.ENTRY)
        return QuickGrant(tokens=tokens, granted_at=granted_at, seen_at=seen_at)

    def _call_quickly(self, parameters: dict[str, Any]) -> list[int] | None:
        with self._guard:
            connection = self._reach()
            if self._quick is None or self._quick.connection is not connection:
                self._quick = PreparedCall(connection, _STATEMENTS["take_uncontested"])
            return self._quick.run(parameters)

    def entries(self, after: int, limit: int = 1000) -> list[JournalEntry]:
        self.seal()
        rows = self.view(lambda snapshot: snapshot.all("entries_after", after=after, limit=limit))
        return [JournalEntry.from_row(row) for row in rows]

    def last_entry(self) -> JournalEntry | None:
        self.seal()
        row = self.view(lambda snapshot: snapshot.one("entry_last"))
        return JournalEntry.from_row(row) if row else None

    def seal(self) -> None:
        """Give all visible entries their positions and hashes in the chain."""
        row = self.view(lambda snapshot: snapshot.one("unsealed_last"))
        newest = (row["number"] if row else None) or 0
        # Later entries are left to the next call: others may write faster than one process can seal.
        sealed = 0
        while sealed < newest:
            sealed = self.change(_seal_page, areas={"//seal": True}) or newest

    def find_damage(self) -> str:
        """Return nothing: the server checks its own files."""
        return ""

    def describe(self) -> dict[str, Any]:
        """Return where the store is, for people."""
        version = self._reach().info.server_version
        return {
            "kind": f"PostgreSQL {version // 10000}.{version % 10000}",
            "place": show_url(self.url),
        }

    def listen(self) -> Listener:
        return PostgresListener(self)

    def close(self) -> None:
        with self._guard:
            if self._connection is not None and os.getpid() == self._pid:
                self._connection.close()


class _Again(Exception):
    """The database gave up the transaction; it can be run again."""

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _seal_page(tx: Transaction) -> int:
    """Seal a page of entries; return the number of the last one."""
    # Entries that became visible since the last call come after all sealed ones.
    rows = tx.all("unsealed", limit=_SEAL_PAGE)
    last = tx.one("entry_last")
    position, previous = (last["position"], last["hash"]) if last else (0, EMPTY_CHAIN_HASH)
    positions: list[int] = []
    hashes: list[str] = []
    for row in rows:
        position += 1
        previous = hash_entry(
            previous, position, *(row[name] for name in ("number", "at", "kind", "agent", "session", "data"))
        )
        positions.append(position)
        hashes.append(previous)
    if rows:
        numbers = [row["number"] for row in rows]
        tx.run("entries_seal", numbers=numbers, positions=positions, hashes=hashes)
    return rows[-1]["number"] if rows else 0


def _text_array(items: Iterable[str]) -> str:
    """Return texts as a PostgreSQL array."""
    return _array('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items)


def _array(items: Iterable[str]) -> str:
    """Return a PostgreSQL array; psycopg needs longer for it than the rest of the claim takes."""
    return "{" + ",".join(items) + "}"


class PostgresSnapshot:
    """One consistent state of the database."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._now: int | None = store.given_now()

    @property
    def now(self) -> int:
        """The server's time, read once."""
        if self._now is None:
            row = self._store.execute("server_now", {}).fetchone()
            assert row is not None
            self._now = int(row["now"])
        return self._now

    def one(self, statement: str, /, **parameters: object) -> Row | None:
        return self._cursor(statement, parameters).fetchone()

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        return self._cursor(statement, parameters).fetchall()

    def _cursor(self, statement: str, parameters: dict[str, Any]) -> psycopg.Cursor[Any]:
        if statement in _NEED_NOW:
            parameters["now"] = self.now
        return self._store.execute(statement, parameters)

    def near(
        self, statement: str, alternatives: Sequence[Alternative], session: str = "", **parameters: object
    ) -> list[Row]:
        ranges = [below(alternative.key) for alternative in alternatives]
        return self.all(
            f"{statement}_all",
            ancestors=list({up for alternative in alternatives for up in ancestors(alternative.key)}),
            lows=[low for low, _ in ranges],
            highs=[high for _, high in ranges],
            session=session,
            **parameters,
        )


class PostgresTransaction(PostgresSnapshot):
    """One transaction."""

    result: Any

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store)
        row = store.execute("opening", {"given": store.given_now()}).fetchone()
        assert row is not None
        self._now = int(row["now"])
        self.epoch = int(row["epoch"])
        self.has_lapsed = bool(row["has_lapsed"])
        self.has_waiters = bool(row["has_waiters"])
        self.wakes = bool(row["has_listeners"])
        if row["moved_to"] is not None:
            raise store_moved_error(show_url(store.url), row["moved_to"])
        self.has_freed = False
        self.freed: set[str] = set()
        self.touched: dict[str, None] = {}
        self.has_recorded = False

    def run(self, statement: str, /, **parameters: object) -> int:
        return self._cursor(statement, parameters).rowcount

    def lock_areas(self, areas: Mapping[str, bool]) -> None:
        self._store.lock(areas)

    def set_savepoint(self) -> None:
        self._store.command("SAVEPOINT held")

    def undo_to_savepoint(self) -> None:
        self._store.command("ROLLBACK TO SAVEPOINT held; RELEASE SAVEPOINT held")

    def next_numbers(self, count: int) -> list[int]:
        return [row["number"] for row in self.all("numbers", count=count)] if count else []

    def continue_numbers(self) -> None:
        """Number the next entry above all others, after an import."""
        self.one("journal_continue")

    def record(
        self, kind: str, agent: str, session: str, facts: dict[str, Any], number: int | None = None
    ) -> None:
        if number is None:
            number = self.next_numbers(1)[0]
        at = self._store.clock.wall_ms() if self._store.given_now() is not None else self.now
        self.run(
            "entry_add",
            number=number,
            at=at,
            kind=kind,
            agent=agent,
            session=session,
            data=encode_data(facts),
        )
        self.has_recorded = True
