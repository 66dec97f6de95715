"""Opens, creates, upgrades and re-times a SQLite store, and refuses what is not one."""

from __future__ import annotations

import os
import sqlite3
import time

from landlane.errors import StoreCorrupt, StoreError
from landlane.ids import new_uuid
from landlane.store.file_lock import retry_until
from landlane.store.sqlite import errors as sqlite_errors
from landlane.store.statements import read_migrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.clock import Clock
    from landlane.store.file_lock import FairLock

APPLICATION_ID = 0x494C434B  # "ILCK"
SCHEMA = 5
READABLE_BY = 1  # the oldest program that may still use what this one writes


def open_database(
    path: str, clock: Clock, lock: FairLock, wait_seconds: float, *, is_fresh: bool = False
) -> tuple[sqlite3.Connection, int]:
    """A connection to the store at `path`, made or upgraded if need be, and the base of its clock.

    With `is_fresh` it may be new though a journal lies beside it: the caller brings along what belongs to it.

    Raises:
        StoreCorrupt: the file is something else, was emptied or is gone though its journal is there.
        StoreError: it was made by a newer program.
    """
    db = sqlite3.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        waiting = _Waiting(wait_seconds, path)
        facts = waiting.until(lambda: _facts(db))
        if facts.get("schema") != str(SCHEMA) or facts.get("boot_id") != clock.boot_id():
            if not lock.acquire(wait_seconds):
                raise sqlite_errors.busy(path)
            try:
                facts = waiting.until(lambda: _bring_up_to_date(db, path, clock, is_fresh=is_fresh))
            finally:
                lock.release()
        check_facts(facts, path)
        return db, int(facts["base"])
    except BaseException:
        db.close()
        raise


class _Waiting:
    """Runs something again while a foreign program holds the file, up to a limit."""

    def __init__(self, seconds: float, path: str) -> None:
        self._deadline = time.monotonic() + seconds
        self._path = path

    def until(self, attempt: Callable[[], dict[str, str]]) -> dict[str, str]:
        result: dict[str, str] = {}

        def try_once() -> bool:
            try:
                result.update(attempt())
            except sqlite3.OperationalError as error:
                if sqlite_errors.is_busy(error):
                    return False
                raise
            return True

        if not retry_until(try_once, self._deadline, time.monotonic):
            raise sqlite_errors.busy(self._path)
        return result


def _facts(db: sqlite3.Connection) -> dict[str, str]:
    """What the store says of itself; nothing when the file is new."""
    if db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
        return dict(db.execute("SELECT key, value FROM meta"))
    return {}


def check_facts(facts: dict[str, str], path: str) -> None:
    """Refuse a store that this program must not use."""
    if int(facts.get("readable_by", "0")) > SCHEMA:
        raise StoreError(
            f"the store {path} is of a newer landlane (schema {facts['schema']}; this one knows {SCHEMA})",
            code="STORE_NEWER",
            hint="upgrade landlane here: pip install --upgrade landlane",
        )


def moved_away(place: str, moved_to: str) -> StoreError:
    """The store was carried elsewhere; what is written here would be lost."""
    return StoreError(
        f"the store {place} has moved to {moved_to}",
        code="STORE_MOVED",
        hint="set LANDLANE_STORE or [store] url to the new place, or take LANDLANE_STORE away",
    )


def _bring_up_to_date(db: sqlite3.Connection, path: str, clock: Clock, *, is_fresh: bool) -> dict[str, str]:
    """Create, upgrade or re-time the store; called with the file lock held."""
    facts = _facts(db)
    if not facts:
        _refuse_foreign(db, path)
        if not is_fresh:
            _refuse_lost(path)
        # The mode can only be changed outside a transaction, and stays with the file.
        db.execute("PRAGMA journal_mode=WAL")
    check_facts(facts, path)
    db.execute("PRAGMA synchronous=FULL")
    db.execute("BEGIN IMMEDIATE")
    try:
        _migrate(db, facts)
        if _facts(db).get("boot_id") != clock.boot_id():
            _move_time(db, clock)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return _facts(db)


def _refuse_foreign(db: sqlite3.Connection, path: str) -> None:
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreCorrupt(
            f"{path} is a database of some other program",
            code="NOT_A_STORE",
            hint="point LANDLANE_STORE at another file; this one was left as it is",
        )


def _refuse_lost(path: str) -> None:
    journal = os.path.join(os.path.dirname(path), "journal.jsonl")
    if os.path.exists(journal) and os.path.getsize(journal):
        raise StoreCorrupt(
            f"the store {path} is empty or gone, but its journal is there",
            code="STORE_LOST",
            hint="`landlane doctor --fix` rebuilds it from journal.jsonl; move that file away to begin anew",
        )


def _migrate(db: sqlite3.Connection, facts: dict[str, str]) -> None:
    have = int(facts.get("schema", "0"))
    for version, script in read_migrations("sqlite"):
        if version > have:
            for statement in split_script(script):
                db.execute(statement)
    if have < SCHEMA:
        set_fact(db, "schema", str(SCHEMA))
        set_fact(db, "readable_by", str(READABLE_BY))
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={SCHEMA}")
    if not facts:
        set_fact(db, "store_id", new_uuid())
        set_fact(db, "epoch", "0")


def _move_time(db: sqlite3.Connection, clock: Clock) -> None:
    """The machine was restarted: go on from the newest instant the store knows, under a new epoch.

    A disk that promised more than it kept may have lost grants in the restart; the new epoch makes sure
    that their tokens are never given out again.
    """
    newest = db.execute(
        "SELECT max(coalesce((SELECT max(seen_at) FROM sessions), 0),"
        " coalesce((SELECT max(granted_at) FROM claims), 0))"
    ).fetchone()[0]
    set_fact(db, "base", str(newest - clock.boot_ms() if newest else 0))
    set_fact(db, "boot_id", clock.boot_id())
    # Nobody waits over a restart. By a clock that was set back, the dead would look alive for a while.
    db.execute("DELETE FROM waiter_paths")
    db.execute("DELETE FROM waiters")
    raise_epoch(db)


def raise_epoch(db: sqlite3.Connection, above: int = 0) -> int:
    """Begin a new epoch of tokens, higher than every one before."""
    epoch = max(int(db.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()[0]), above) + 1
    set_fact(db, "epoch", str(epoch))
    return epoch


def set_fact(db: sqlite3.Connection, key: str, fact: str) -> None:
    """Remember something in the store's own table of facts."""
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, fact),
    )


def split_script(script: str) -> list[str]:
    """The statements of a script one by one: `executescript` would commit the transaction around it."""
    statements: list[str] = []
    text = ""
    for line in script.splitlines():
        text += line + "\n"
        if sqlite3.complete_statement(text):
            statements.append(text)
            text = ""
    return statements
