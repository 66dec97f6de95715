"""When each session was last active, to the second, and what it did then.

With a store on this machine every session has a small file beside it: its modification time is the last sign
of life, its content the current action. Marking it costs no write to the store, so that every call can do it;
`hook_entry/client_fast_path.py` does it, too. A store on a server has no such files: there at most one write
per session in 15 seconds says the same.
"""

from __future__ import annotations

import os
import time

from landlane.errors import StoreTransient
from landlane.sessions.leases import renew_session, touch
from landlane.store import records
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Store, Transaction

# Also in hook_entry/client_fast_path.py. All actions have one size, so that no end of an older one is left.
RECORD_BYTES = 240
SHARED_MS = 15_000  # between two writes to a store on a server
_FILE_MS = 1_000
_KEPT_SECONDS = 7 * 86_400
_SHORT_WAIT_MS = 500
_NOUN = "activity"


@value
class Activity:
    """The last sign of life in calendar milliseconds, how exact that is, and what the session did."""

    seen_at: int
    accuracy_ms: int
    doing: str = ""


def show_life(repo: Repository, session: Session, doing: str = "") -> None:
    """Record that a session is active now, and what it does; renew its lease if that is due.

    Raises:
        Stale: the session is over.
    """
    if not repo.store.activity_folder:
        _write_to_server(repo.store, session, doing)
        return
    touch(repo.store, session)
    mark_file(repo.store, session.id, doing)


def mark_file(store: Store, session_id: str, doing: str = "") -> None:
    """Set the time of a session's file to now, and its action if one is given; make a missing file."""
    path = os.path.join(store.activity_folder, session_id)
    try:
        if doing:
            _write(path, doing)
        else:
            os.utime(path)
    except FileNotFoundError:
        _make_file(store.activity_folder, path, doing)
    except OSError:
        return  # of another user, or the disk is full: the lease is what counts


def _write(path: str, doing: str, flags: int = 0) -> None:
    file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    try:
        if doing:
            os.write(file, _record(doing))
    finally:
        os.close(file)


def _record(doing: str) -> bytes:
    line = " ".join(doing.split()).encode("utf-8", "replace")[:RECORD_BYTES]
    return line.ljust(RECORD_BYTES)


def _make_file(folder: str, path: str, doing: str) -> None:
    """Make the file of a new session, and remove those of sessions that ended long ago."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with os.scandir(folder) as entries:
            old = [one.path for one in entries if time.time() - one.stat().st_mtime > _KEPT_SECONDS]
        for one in old:
            os.unlink(one)
        _write(path, doing, os.O_CREAT)
    except OSError:
        return


def forget_file(store: Store, session_id: str) -> None:
    """Remove the file of a session that has ended."""
    if store.activity_folder:
        try:
            os.unlink(os.path.join(store.activity_folder, session_id))
        except OSError:
            return


def _write_to_server(store: Store, session: Session, doing: str) -> None:
    if store.view(lambda snapshot: snapshot.now) - session.seen_at <= SHARED_MS:
        return

    def work(tx: Transaction) -> bool:
        if doing:
            line = _record(doing).decode(errors="ignore").strip()
            document = {"id": session.id, "state": "kept", "session": session.id, "doing": line}
            records.put_without_entry(tx, _NOUN, document)
        return bool(tx.run("session_touch", session=session.id))

    try:
        if not store.change(work, is_durable=False, wait_ms=_SHORT_WAIT_MS):
            renew_session(store, session, wait_ms=_SHORT_WAIT_MS)
    except StoreTransient:
        return  # the store stayed locked: the next call tries again


def newer_activity(one: Activity, other: Activity) -> Activity:
    """Return the newer of two; if it does not show an action, with that of the older one."""
    older, newer = sorted((one, other), key=lambda activity: activity.seen_at)
    return newer if newer.doing else replace(newer, doing=older.doing)


def read_activity(repo: Repository, session: Session) -> Activity:
    """Return when a session was last active, how exact that is, and what it did."""
    store = repo.store
    stored = store.wall_of(session.seen_at)
    if not store.activity_folder:
        document = store.view(lambda snapshot: records.find(snapshot, _NOUN, session.id)) or {}
        return Activity(seen_at=stored, accuracy_ms=SHARED_MS, doing=str(document.get("doing", "")))
    try:
        with open(os.path.join(store.activity_folder, session.id), "rb") as file:
            doing = file.read(RECORD_BYTES).decode("utf-8", "ignore").strip()
            marked = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
    except OSError:
        return Activity(seen_at=stored, accuracy_ms=max(session.shortest_ms // 3, _FILE_MS))
    # A clock that was set back since must not put a session into the future.
    seen_at = max(min(marked, repo.wall_ms()), stored)
    return Activity(seen_at=seen_at, accuracy_ms=_FILE_MS, doing=doing)
