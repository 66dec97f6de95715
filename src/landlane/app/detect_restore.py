"""Raise the token epoch when the store came from a backup."""

from __future__ import annotations

from landlane.app.mirror_owner import follows_this_store
from landlane.app.repository_record import begin_epoch, newest_epoch
from landlane.store.mirror import read_journal, read_tail, set_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.store.journal_chain import Entry
    from landlane.store.postgres.store import PostgresStore
    from landlane.store.sqlite.store import SqliteStore

    AnyStore = SqliteStore | PostgresStore


def notice_restore(store: AnyStore, folder: str, journal_path: str) -> None:
    """Raise the epoch when the store is older than the journal file beside it: it came from a backup."""
    tail, _ = read_tail(journal_path)
    if not follows_this_store(store, folder, journal_path) or tail is None:
        return
    found = store.entries(tail.position - 1, 1)
    if found and found[0].hash == tail.hash:
        return
    # The epoch first: whoever dies in between leaves a file that is noticed once more.
    try:
        begin_epoch(store, newest_epoch(_readable(journal_path)), "store.restored", {})
        set_aside(journal_path)
    except FileNotFoundError:
        return  # another process noticed it first


def _readable(journal: str) -> Iterator[Entry]:
    """The entries of a journal file up to the first line that is none."""
    try:
        yield from read_journal(journal)
    except ValueError:
        return
