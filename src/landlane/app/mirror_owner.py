"""Which store the journal file belongs to."""

from __future__ import annotations

import os

from landlane.files import write_whole
from landlane.store.mirror import set_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.store.postgres.store import PostgresStore
    from landlane.store.sqlite.store import SqliteStore

    AnyStore = SqliteStore | PostgresStore


FOLLOWED = "journal.store"


def follows_this_store(store: AnyStore, folder: str, journal_path: str) -> bool:
    """Whether the journal file here is the copy of this very store; one of another store is kept aside."""
    store_id = store_id_of(store)
    followed = read_followed(folder)
    if followed == store_id:
        return True
    if followed and os.path.exists(journal_path):
        set_aside(journal_path)
    note_followed(folder, store_id)
    return not followed


def store_id_of(store: AnyStore) -> str:
    """What tells this store from every other."""
    row = store.view(lambda snapshot: snapshot.one("meta_get", key="store_id"))
    return str(row["value"]) if row else ""


def read_followed(folder: str) -> str:
    """The id of the store that the journal file in this folder is the copy of, if it is known."""
    try:
        with open(os.path.join(folder, FOLLOWED), encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def note_followed(folder: str, store_id: str) -> None:
    """Remember which store the journal file in this folder is the copy of."""
    write_whole(os.path.join(folder, FOLLOWED), store_id + "\n")
