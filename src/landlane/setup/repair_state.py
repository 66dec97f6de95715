"""Repair the state folder: set aside what is not a file, and find the store and the id it has lost.

A store is only used again if it holds this repository and continues the journal file. Nothing is created.
"""

from __future__ import annotations

import os

from landlane.app.open import find_lost_id, open_store
from landlane.app.plain_files import move_aside, read_journal, read_tail
from landlane.app.repository_record import arriving_key, list_repositories, moved_key
from landlane.app.store_place import (
    ID_FILE,
    JOURNAL,
    POINTER,
    STORE_ID_FILE,
    STORE_NAME,
    is_used,
    known_place,
    named_place,
    record_id,
    record_place,
    recorded_id,
    recorded_place,
    show_place,
    store_place,
)
from landlane.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.settings.model import Settings
    from landlane.store.interface import Store


_DATABASE = tuple(f"{STORE_NAME}{ending}" for ending in ("", "-wal", "-shm", ".lock"))
_FILES = (
    *_DATABASE,
    *(POINTER, ID_FILE, JOURNAL, STORE_ID_FILE, "claims.json", "tasks.json", "mirror.lock"),
    *("settings.cache", "init.json", "init.lock", "git-shape.json", "git-limits.json", "settings.lock"),
)
_FOLDERS = ("sessions", "wake", "leftovers")


def find_odd_files(folder: str) -> list[str]:
    """Return the entries of the state folder that should be regular files, or folders, but are not."""
    files = (os.path.join(folder, name) for name in _FILES)
    folders = (os.path.join(folder, name) for name in _FOLDERS)
    odd = [path for path in files if os.path.lexists(path) and not os.path.isfile(path)]
    return [*odd, *(path for path in folders if os.path.lexists(path) and not os.path.isdir(path))]


def set_odd_aside(folder: str) -> list[str]:
    """Rename what `find_odd_files` finds, and return the new names. The store is left to its rebuild."""
    odd = [path for path in find_odd_files(folder) if os.path.basename(path) != STORE_NAME]
    return [os.path.basename(move_aside(path)) for path in odd]


def repair_pointers(checkout: Checkout, settings: Settings) -> list[str]:
    """Write again which store and which repository hold here, if that is damaged; return what was done.

    Raises:
        StoreError: neither the store nor the journal knows.
    """
    return [*_repair_place(checkout, settings), *_repair_id(checkout, settings)]


def _repair_id(checkout: Checkout, settings: Settings) -> list[str]:
    folder = checkout.state_folder
    path = os.path.join(folder, ID_FILE)
    try:
        if recorded_id(folder) or not is_used(folder):
            return []
    except StoreError:
        move_aside(path)
    found = settings.repository.id or find_lost_id(store_place(checkout, settings), folder, settings)
    record_id(folder, found)
    return [f"the repository id {found}, from the {'settings' if settings.repository.id else 'store'}"]


def _repair_place(checkout: Checkout, settings: Settings) -> list[str]:
    folder = checkout.state_folder
    try:
        known = known_place(folder)
    except StoreError:
        known = ""
        if os.path.lexists(os.path.join(folder, POINTER)):
            move_aside(os.path.join(folder, POINTER))
    else:
        if recorded_place(folder) and not _moved_from(known, folder, settings):
            return []
    if not is_used(folder):
        return []
    moved = [_moved_from(place, folder, settings) for place in (known, os.path.join(folder, STORE_NAME))]
    for place in (*moved, *_candidates(checkout, settings, known)):
        if place and _continues_here(place, folder, settings, has_moved=place in moved):
            record_place(folder, place)
            return [f"the store is at {show_place(place)}"]
    return []


def _candidates(checkout: Checkout, settings: Settings, known: str) -> list[str]:
    """Return the places where the store may be: at its default place, where named, where it moved to."""
    folder = checkout.state_folder
    default = os.path.join(folder, STORE_NAME)
    journal = os.path.join(folder, JOURNAL)
    try:
        recorded = [str(one.facts()["to"]) for one in read_journal(journal) if one.kind == "store.moved"]
    except ValueError:
        recorded = []
    named, _ = named_place(checkout, settings)
    return list(dict.fromkeys((known, default, named, *recorded[::-1])))


def _moved_from(place: str, folder: str, settings: Settings) -> str:
    """Return where the state has moved from this place; empty if it has not, or that cannot be read."""
    repository = settings.repository.id or _known_id(folder)
    if not repository or not place or ("://" not in place and not os.path.isfile(place)):
        return ""
    try:
        store = open_store(place, folder, repository, settings, may_create=False)
    except StoreError:
        return ""
    try:
        row = store.view(lambda snapshot: snapshot.one("meta_get", key=moved_key(repository)))
        return str(row["value"]) if row is not None else ""
    except StoreError:
        return ""
    finally:
        store.close()


def _known_id(folder: str) -> str:
    try:
        return recorded_id(folder)
    except StoreError:
        return ""


def _continues_here(place: str, folder: str, settings: Settings, *, has_moved: bool) -> bool:
    """Return whether the store at a place holds this repository and continues its journal file.

    What an interrupted move copied counts only if the source is marked as moved.
    """
    try:
        repository = _known_id(folder) or settings.repository.id or find_lost_id(place, folder, settings)
        store = open_store(place, folder, repository, settings, may_create=False)
    except StoreError:
        return False
    try:
        mark = arriving_key(repository)
        arriving = store.view(lambda snapshot: snapshot.one("meta_get", key=mark))
        if repository not in list_repositories(store) or (arriving is not None and not has_moved):
            return False
        if not _continues(store, folder):
            return False
        if arriving is not None:
            store.change(lambda tx: tx.run("meta_drop", key=mark))
        return True
    except StoreError:
        return False
    finally:
        store.close()


def _continues(store: Store, folder: str) -> bool:
    tail, _ = read_tail(os.path.join(folder, JOURNAL))
    return tail is None or [one.hash for one in store.entries(tail.position - 1, 1)] == [tail.hash]
