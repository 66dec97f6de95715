"""Open, create and migrate a SQLite file; retry while it is locked; turn errors of SQLite into our own."""

from __future__ import annotations

import errno
import os
import sqlite3
import time

from landlane.errors import LandlaneError, StoreCorrupt, StoreError, StoreTransient
from landlane.files import open_beside
from landlane.ids import new_uuid
from landlane.store.file_lock import FairLock
from landlane.store.schema_version import check_version, is_current, scripts_after, version_facts
from landlane.store.unwritable import unwritable_error
from landlane.text import shell_path, shell_quote, short_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeVar

    T = TypeVar("T")
    from landlane.clock import Clock


_BUSY = (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED
_CANNOT_OPEN = 14  # SQLITE_CANTOPEN
_UNWRITABLE = (3, 8)  # SQLITE_PERM, SQLITE_READONLY
_DAMAGED = (11, 26)  # SQLITE_CORRUPT, SQLITE_NOTADB
_MESSAGES: dict[int, tuple[str, str, str]] = {
    10: ("STORE_IO", "cannot be read: the disk reports an error", "check the disk, then: landlane doctor"),
    13: (
        "STORE_FULL",
        "cannot be written: the disk is full",
        "nothing was changed; free some space: df -h .",
    ),
    14: ("STORE_UNOPENABLE", "cannot be opened", "check that its folder exists and is writable"),
}


class translating_errors:  # noqa: N801 - reads as a word in `with translating_errors(path):`
    """Translate exceptions of SQLite in a `with` block; faster than contextlib, for every claim."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, sqlite3.Error):
            raise translate(error, self._path) from error
        if isinstance(error, OSError):
            raise translate_os_error(error, self._path) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another connection held a lock."""
    return _code(error) in _BUSY


def retry_while_busy(attempt: Callable[[], T], deadline: float, path: str) -> T:
    """Return the result of `attempt`, which is repeated while another program locks the file.

    The pauses are short, growing and jittered.

    Raises:
        StoreTransient: the file is still locked at the deadline.
    """
    pause, begun_at = 0.0002, time.monotonic()
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            if time.monotonic() >= deadline:
                raise busy_error(path, time.monotonic() - begun_at) from error
        jitter = int.from_bytes(os.urandom(2), "big") / 65536
        time.sleep(pause * (0.5 + jitter))
        pause = min(pause * 1.5, 0.005)


def busy_error(path: str, waited_seconds: float = 0.0) -> StoreTransient:
    """Return the error for a store that was locked until the timeout; it names the process, if known."""
    from landlane.store.sqlite.lock_holder import find_lock_holder  # noqa: PLC0415 - only a failure needs it

    holder = find_lock_holder(path)
    hint = f"see who has it open: fuser -v {shell_path(path)}"
    if holder is not None and holder.is_stopped:
        hint = f"let it continue; nothing is lost: kill -CONT {holder.pid}"
    elif holder is not None:
        hint = f"see what it does: ps -fp {holder.pid}"
    waited = f"has been locked for {waited_seconds:.0f} s" if waited_seconds >= 1 else "is locked"
    error = StoreTransient(
        f"the store {waited} by {holder or 'another program'}",
        code="STORE_BUSY",
        hint=hint,
        place=path,
        pid=holder.pid if holder is not None else None,
    )
    error.exit_code = 5
    return error


def translate(error: sqlite3.Error, path: str) -> LandlaneError:
    """Return the error of Landlane for one of SQLite."""
    code = _code(error)
    if code in _BUSY:
        return busy_error(path)
    if code in _UNWRITABLE:
        return unwritable_error(path)
    if code in _DAMAGED or (isinstance(error, sqlite3.DatabaseError) and "malformed" in str(error)):
        return StoreCorrupt(
            f"the store {short_path(path)} is damaged or not a store: {error}",
            code="STORE_CORRUPT",
            hint="rebuild it from the journal; the damaged file is kept: landlane doctor --fix",
        )
    if code == _CANNOT_OPEN and os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
        return unwritable_error(path)
    name, message, hint = _MESSAGES.get(code, ("STORE_FAILED", f"failed: {error}", "landlane doctor"))
    return StoreError(f"the store {path} {message}", code=name, hint=hint)


def translate_os_error(error: OSError, path: str) -> LandlaneError:
    """Return the error of Landlane for one of the file system, met at a store or its folder."""
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return unwritable_error(path, error.strerror)
    sqlite_codes = {errno.ENOSPC: 13, errno.EDQUOT: 13, errno.EIO: 10}
    name, message, hint = _MESSAGES[sqlite_codes.get(error.errno or 0, _CANNOT_OPEN)]
    return StoreError(f"the store {path} {message} ({error.strerror})", code=name, hint=hint)


def _code(error: sqlite3.Error) -> int:
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


APPLICATION_ID = 0x4C4E444C  # "LNDL"
_KIND_OF_FILE, _REGULAR, _FOLDER = 0o170000, 0o100000, 0o040000  # as `stat` names them, without its import


def open_database(
    path: str, clock: Clock, wait_seconds: float, *, may_create: bool = True
) -> tuple[sqlite3.Connection, FairLock, int]:
    """Return a connection to the store at `path`, its lock, and the base of its clock.

    The store is migrated if necessary, and created if it may be.

    Raises:
        StoreCorrupt: the file is something else, or was emptied or is gone although it may not be created.
        StoreError: it was written by a newer or an older Landlane.
    """
    _check_file(path, may_create=may_create)
    db = sqlite3.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    db.row_factory = sqlite3.Row
    lock = None
    try:
        deadline = time.monotonic() + wait_seconds
        facts = retry_while_busy(lambda: _checked_facts(db, path), deadline, path)
        lock = FairLock(path + ".lock")
        if not is_current(facts) or facts.get("boot_id") != clock.boot_id():
            if not lock.acquire(wait_seconds):
                raise busy_error(path, wait_seconds)
            try:
                facts = retry_while_busy(
                    lambda: _bring_up_to_date(db, path, clock, may_create=may_create), deadline, path
                )
            finally:
                lock.release()
        return db, lock, int(facts["base"])
    except BaseException:
        _close_unchanged(db, path)
        if lock is not None:
            lock.close()
        raise


def _close_unchanged(db: sqlite3.Connection, path: str) -> None:
    """Close a connection without writing its log back, which SQLite does when the last one is closed."""
    last = None
    try:
        if os.path.getsize(path + "-wal"):
            quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
            last = sqlite3.connect(f"file:{quoted}?mode=ro", timeout=0, uri=True)
            last.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (OSError, sqlite3.Error):
        pass
    db.close()
    if last is not None:
        last.close()


def _checked_facts(db: sqlite3.Connection, path: str) -> dict[str, str]:
    """Return what the store says about itself, or nothing if the file is new.

    Raises:
        StoreCorrupt: the file belongs to another program, or is damaged.
        StoreError: it was written by a newer or an older Landlane.
    """
    db.execute("BEGIN")  # one snapshot: another process may be creating the store
    try:
        header = db.execute(
            "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        application_id, user_version = header["application_id"], header["user_version"]
        if application_id != APPLICATION_ID:
            if application_id or user_version or db.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise _not_a_store(path, application_id)
            return {}
        facts = _facts(db)
    finally:
        if db.in_transaction:
            db.execute("COMMIT")
    if is_current(facts):  # the number is in two places: a store with another one in either is refused
        facts["schema"] = str(user_version)
    check_version(facts, path, lambda: _way_out(path))
    return facts


def _facts(db: sqlite3.Connection) -> dict[str, str]:
    try:
        return {row["key"]: row["value"] for row in db.execute("SELECT key, value FROM meta")}
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return {}
        raise


def _not_a_store(path: str, application_id: int) -> StoreCorrupt:
    named = f" (application id {application_id & 0xFFFFFFFF:#010x})" if application_id else ""
    return StoreCorrupt(
        f"{short_path(path)} is a database of another program{named}",
        code="NOT_A_STORE",
        hint="it was not changed; set LANDLANE_STORE to another file",
    )


def _way_out(path: str) -> str:
    """Return how to go on without a store of an older version, as the end of a hint."""
    folder = os.path.dirname(path)
    if os.path.exists(os.path.join(folder, "journal.jsonl")):
        return "rebuild the store from the journal (the old file is kept): landlane store rebuild"
    aside = shell_quote(os.path.join(folder, "older-store"))
    return f"start with an empty store: mkdir {aside} && mv {shell_quote(path)}* {aside}"


def store_moved_error(place: str, moved_to: str) -> StoreError:
    """Return the error for a store that was moved; anything written to it would be lost."""
    return StoreError(
        f"the store {place} has moved to {moved_to}",
        code="STORE_MOVED",
        hint=f"use it there; this also continues an interrupted move: landlane store move '{moved_to}'",
    )


def _bring_up_to_date(db: sqlite3.Connection, path: str, clock: Clock, *, may_create: bool) -> dict[str, str]:
    """Create the store, migrate it, or continue its time after a restart; called with the file lock held."""
    facts = _checked_facts(db, path)
    if not facts:
        if not may_create:
            raise lost_error(path)
        # The mode can only be changed outside a transaction, and stays with the file.
        db.execute("PRAGMA journal_mode=WAL")
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
    return _checked_facts(db, path)


def _check_file(path: str, *, may_create: bool) -> None:
    """Refuse what is not a regular file before SQLite opens it: it would wait for a pipe, or create a file.

    Raises:
        StoreCorrupt: something else is there, or nothing although the store may not be created.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        if os.path.islink(path):
            raise _not_a_file(path, "a symbolic link that leads nowhere") from error
        if not may_create:
            raise lost_error(path) from error
        _create_beside(path)
        return
    except OSError:
        return  # SQLite reports it
    if mode & _KIND_OF_FILE != _REGULAR:
        raise _not_a_file(path, "a folder" if mode & _KIND_OF_FILE == _FOLDER else "not a regular file")


def _create_beside(path: str) -> None:
    """Create an empty file with the rights of its folder; SQLite gives its log the same."""
    try:
        os.close(open_beside(path, os.O_RDWR | os.O_CREAT))
    except OSError:
        return  # SQLite reports it


def _not_a_file(path: str, kind: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"the store {short_path(path)} is {kind}",
        code="STORE_CORRUPT",
        hint="rebuild it from the journal; what is there is kept: landlane doctor --fix",
    )


def lost_error(path: str) -> StoreCorrupt:
    """Return the error for a store that is empty or gone although it was used before."""
    return StoreCorrupt(
        f"the store {short_path(path)} is empty or gone",
        code="STORE_LOST",
        hint="restore a backup of it, or rebuild it from the journal: landlane doctor --fix",
    )


def _migrate(db: sqlite3.Connection, facts: dict[str, str]) -> None:
    scripts = scripts_after("sqlite", int(facts.get("schema", "0")))
    for script in scripts:
        for statement in split_script(script):
            db.execute(statement)
    if scripts:
        new = version_facts()
        for key, fact in new.items():
            set_fact(db, key, fact)
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={new['schema']}")
    if not facts:
        set_fact(db, "store_id", new_uuid())
        set_fact(db, "epoch", "0")


def _move_time(db: sqlite3.Connection, clock: Clock) -> None:
    """After a restart of the machine, continue from the newest instant in the store, under a new epoch.

    A disk that lied about a flush may have lost grants in the restart; with the new epoch their tokens are
    never given out again.
    """
    newest = db.execute(
        "SELECT max(coalesce((SELECT max(seen_at) FROM sessions), 0),"
        " coalesce((SELECT max(granted_at) FROM claims), 0)) AS newest"
    ).fetchone()["newest"]
    set_fact(db, "base", str(newest - clock.boot_ms() if newest else 0))
    set_fact(db, "boot_id", clock.boot_id())
    # No waiter survives a restart. If the clock was set back, dead waiters would look alive for a while.
    db.execute("DELETE FROM waiter_paths")
    db.execute("DELETE FROM waiters")
    raise_epoch(db)


def raise_epoch(db: sqlite3.Connection, above: int = 0) -> int:
    """Start a new epoch of tokens, higher than all before, and return it."""
    epoch = max(int(_facts(db)["epoch"]), above) + 1
    set_fact(db, "epoch", str(epoch))
    return epoch


def set_fact(db: sqlite3.Connection, key: str, fact: str) -> None:
    """Set a fact about the store."""
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, fact),
    )


def split_script(script: str) -> list[str]:
    """Return the statements of a script; `executescript` would commit the surrounding transaction."""
    statements: list[str] = []
    text = ""
    for line in script.splitlines():
        text += line + "\n"
        if sqlite3.complete_statement(text):
            statements.append(text)
            text = ""
    return statements
