"""The plain files beside the store: keep them up to date, and detect a store that came from a backup.

`journal.jsonl`, `claims.json` and `tasks.json` follow the store. `journal.store` holds the id of the store
that the journal file was copied from.
"""

from __future__ import annotations

import os

from landlane.app.repository_record import begin_epoch, newest_epoch
from landlane.files import write_whole
from landlane.store.mirror import JOURNAL, Mirror, read_journal, read_tail, set_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.interface import Store
    from landlane.store.journal_chain import Entry

_STORE_ID_FILE = "journal.store"


def update_files(repo: Repository, wait_seconds: float) -> None:
    """Bring the files up to the state of the store."""
    contents = {"claims": lambda: _live_claims(repo), "tasks": lambda: _open_tasks(repo)}
    added = Mirror(repo.state_folder, repo.store, contents).sync(wait_seconds=wait_seconds)
    if added and repo.settings.journal.git and repo.common_dir:
        from landlane.journal.git_copy import commit_journal  # noqa: PLC0415 - few repositories keep this copy

        commit_journal(repo.home, journal_path(repo))


def journal_path(repo: Repository) -> str:
    """Return where the plain copy of the journal is."""
    return os.path.join(repo.state_folder, JOURNAL)


def _live_claims(repo: Repository) -> list[dict[str, Any]]:
    from landlane.claims import read, to_json  # noqa: PLC0415 - not every command writes the file

    return [to_json.claim_json(claim, repo.store) for claim in read.list_claims(repo)]


def _open_tasks(repo: Repository) -> list[dict[str, Any]]:
    from landlane.tasks import model, records, to_json  # noqa: PLC0415 - not every command writes the file

    return [to_json.task_json(task, repo.store) for task in records.list_tasks(repo, tuple(model.OPEN))]


def detect_restore(store: Store, folder: str) -> None:
    """Raise the token epoch if the store is older than the journal file: it was restored from a backup."""
    path = os.path.join(folder, JOURNAL)
    tail, _ = read_tail(path)
    if not _is_copy_of(store, folder, path) or tail is None:
        return
    entries = store.entries(tail.position - 1, 1)
    if entries and entries[0].hash == tail.hash:
        return
    # The epoch first: if this process dies in between, the next one detects the restore again.
    try:
        begin_epoch(store, newest_epoch(_readable_entries(path)), "store.restored", {})
        set_aside(path)
    except FileNotFoundError:
        return  # another process was quicker


def _readable_entries(path: str) -> Iterator[Entry]:
    """Yield the entries of a journal file up to the first invalid line."""
    try:
        yield from read_journal(path)
    except ValueError:
        return


def _is_copy_of(store: Store, folder: str, path: str) -> bool:
    """Return whether the journal file is a copy of this store; the file of another store is set aside."""
    store_id = read_store_id(store)
    copied_id = read_copied_store_id(folder)
    if copied_id == store_id:
        return True
    if copied_id and os.path.exists(path):
        set_aside(path)
    write_copied_store_id(folder, store_id)
    return not copied_id


def read_store_id(store: Store) -> str:
    """Return the id of a store."""
    row = store.view(lambda snapshot: snapshot.one("meta_get", key="store_id"))
    return str(row["value"]) if row else ""


def read_copied_store_id(folder: str) -> str:
    """Return the id of the store that the journal file is a copy of; empty if unknown."""
    try:
        with open(os.path.join(folder, _STORE_ID_FILE), encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def write_copied_store_id(folder: str, store_id: str) -> None:
    """Record which store the journal file is a copy of."""
    write_whole(os.path.join(folder, _STORE_ID_FILE), store_id + "\n")
