"""Move a repository's state to another store, or follow a move that happened elsewhere.

Everything is copied in one transaction of the target, under a mark that keeps others from using it, then
the source is marked as moved, then the mark is removed and the state folder names the target. Whatever step
a crash prevents, the source or the target is complete, and the same command continues. The move ends with a
new token epoch, so that no token is issued twice. Nothing is deleted.
"""

from __future__ import annotations

import os

from landlane.app.open import open_repository, open_store
from landlane.app.plain_files import read_store_id, read_tail, write_copied_store_id
from landlane.app.repository_record import TABLES, arriving_key, list_repositories, moved_key
from landlane.app.store_place import (
    JOURNAL,
    STORE_NAME,
    VARIABLE,
    is_same_place,
    known_place,
    record_place,
    recorded_id,
    resolve_place,
    show_place,
)
from landlane.errors import Malformed, StoreError
from landlane.git.discovery import find_checkout
from landlane.git.target_settings import settings_in_force
from landlane.ids import new_uuid
from landlane.setup.rebuild_store import set_database_aside
from landlane.store.journal_chain import check_chain
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.settings.model import Settings
    from landlane.store.interface import Row, Snapshot, Store, Transaction


_MOVED = (
    *("repositories", "sessions", "processes", "claims", "lapsed"),
    *("tasks", "task_after", "task_signs", "task_links", "task_counts"),
    *("state", "state_versions", "numbers", "slots", "slot_places", "once"),
    *("records", "record_counts", "verdicts", "runners", "client_sessions", "reads"),
)


# Their keys do not contain the repository, so that two copies cannot be in one store.
_UNIQUE = ("sessions", "reads", "tool_calls")
_GONE = ("STORE_MOVED", "STORE_LOST", "STORE_UNREACHABLE", "STORE_UNOPENABLE", "STORE_MOVE_UNFINISHED")


@value
class Moved:
    """The numbers of what was moved; nothing was if the state was there already."""

    place: str
    entries: int
    claims: int
    sessions: int
    epoch: int
    is_followed: bool = False


def move_store(cwd: str, place: str) -> Moved:
    """Copy everything to the store at `place`, and use that from now on.

    If the state has moved there already, or the store has only another address, use it from now on.

    Raises:
        StoreError: the target holds this repository already, or what arrived is not what was sent.
    """
    checkout = find_checkout(cwd)
    settings = settings_in_force(checkout, is_person=True).settings
    place = resolve_place(checkout, place)
    pinned = os.environ.get(VARIABLE, "")
    if pinned and not is_same_place(resolve_place(checkout, pinned), place):
        raise Malformed(
            f"{VARIABLE} names another place, so every later command would be refused",
            code="STORE_PINNED",
            hint=f"unset it, then move the store: unset {VARIABLE}",
        )
    known = known_place(checkout.state_folder)
    if known and is_same_place(known, place) and "://" not in place:
        raise Malformed("the store is already there", code="STORE_SAME", hint="landlane store info")
    try:
        repo = open_repository(cwd, is_moving=True, is_person=True)
    except StoreError as error:
        if error.code not in _GONE:
            raise
        return _follow(checkout, settings, place, error)
    try:
        repo.settle(wait_seconds=5.0)
        return move_state(repo, place)
    finally:
        repo.store.close()


def move_state(repo: Repository, place: str) -> Moved:
    """Copy everything of an opened repository to the store at a resolved place, and use that from now on."""
    folder, repository = repo.state_folder, repo.store.repository
    moved = None if _is_same_store(repo, place) else _copy(repo, place)
    target = open_store(place, folder, repository, repo.settings, may_create=False)
    try:
        used = _use(folder, target, place, repository)
    finally:
        target.close()
    return moved or used


def _is_same_store(repo: Repository, place: str) -> bool:
    """Return whether a place is only another address of the store."""
    if "://" not in place:
        return False
    target = open_store(place, repo.state_folder, repo.store.repository, repo.settings)
    try:
        return read_store_id(repo.store) == read_store_id(target)
    finally:
        target.close()


def _use(folder: str, target: Store, place: str, repository: str) -> Moved:
    """Make a store that holds the state the one of this state folder."""
    target.change(lambda tx: tx.run("meta_drop", key=arriving_key(repository)))
    write_copied_store_id(folder, read_store_id(target))  # the journal continues there
    record_place(folder, place)
    return Moved(place=show_place(place), entries=0, claims=0, sessions=0, epoch=0, is_followed=True)


def _follow(checkout: Checkout, settings: Settings, place: str, error: StoreError) -> Moved:
    """Use the store at `place` if it holds the state of this state folder and continues its journal.

    Raises:
        StoreError: `error`, which says why the store so far cannot be used, if this one does not continue it.
    """
    folder = checkout.state_folder
    repository = recorded_id(folder) or settings.repository.id
    tail, _ = read_tail(os.path.join(folder, JOURNAL))
    target = open_store(place, folder, repository, settings, may_create=False)
    try:
        is_here = repository in list_repositories(target)
        known = target.entries(tail.position - 1, 1) if tail is not None else []
        if not is_here or (tail is not None and [one.hash for one in known] != [tail.hash]):
            raise error
        return _use(folder, target, place, repository)
    finally:
        target.close()


def _make_room(repo: Repository, place: str, source_id: str) -> None:
    """Set aside what an earlier move, or one that was interrupted, left at the target."""
    repository = repo.store.repository
    if "://" not in place and not _has_content(place):
        if place == os.path.join(repo.state_folder, STORE_NAME):
            set_database_aside(place)
        return
    aside = new_uuid()
    store = open_store(place, repo.state_folder, aside, repo.settings)
    try:
        moved, arriving, known = store.view(lambda snapshot: _marks(snapshot, repository))
        if moved is None and (arriving is None or arriving != source_id):
            return
        if "://" in place or known != [repository]:
            left = moved or show_place(place)
            store.change(lambda tx: _rekey(tx, aside, repository, left), areas={"": True})
            return
    finally:
        store.close()
    set_database_aside(place)


def _has_content(path: str) -> bool:
    """Return whether there is a file with something in it; a folder at a named place is not one either."""
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _marks(snapshot: Snapshot, repository: str) -> tuple[str | None, str | None, list[str]]:
    """Return where the repository has moved to, from which store it is arriving, and all repositories."""
    moved = snapshot.one("meta_get", key=moved_key(repository))
    arriving = snapshot.one("meta_get", key=arriving_key(repository))
    known = [str(row["id"]) for row in snapshot.all("repository_ids")]
    return moved["value"] if moved else None, arriving["value"] if arriving else None, known


def _rekey(tx: Transaction, aside: str, former: str, moved_to: str) -> None:
    """Give an outdated copy another id, so that the state can come back under its own."""
    for table in _UNIQUE:
        tx.run(f"drop_{table}", former=former)
    for table in TABLES:
        tx.run(f"rekey_{table}", former=former)
    tx.run("repository_rename", former=former)
    tx.run("meta_set", key=moved_key(aside), value=moved_to)
    for key in (moved_key(former), arriving_key(former)):
        tx.run("meta_drop", key=key)


def _copy(repo: Repository, place: str) -> Moved:
    """Copy in one source transaction that blocks writers and one target transaction."""
    source = repo.store
    source_id = read_store_id(source)

    def send(tx: Transaction) -> Moved:
        source.stop_writers(tx)
        tables = {table: tx.all(f"export_{table}") for table in _MOVED}
        entries = tx.all("export_journal")
        _make_room(repo, place, source_id)
        target = open_store(place, repo.state_folder, source.repository, repo.settings)
        try:
            shift = target.view(lambda snapshot: snapshot.now) - tx.now  # between the clocks of the stores
            mark = (arriving_key(source.repository), source_id)
            moved = target.change(
                lambda other: _receive(other, tables, entries, tx.epoch, shift, place, mark)
            )
            arrived = target.entries(0, moved.entries + 10)
        finally:
            target.close()
        if check_chain(arrived).trouble or len(arrived) < moved.entries:
            raise StoreError(
                "the copy differs from the original; the old store stays in use",
                code="STORE_MOVE_FAILED",
                hint=f"try again: landlane store move '{show_place(place)}'",
            )
        tx.run("meta_set", key=moved_key(source.repository), value=show_place(place))
        return moved

    return source.change(send, areas={"": True, "//seal": True})


def _receive(
    tx: Transaction,
    tables: dict[str, list[Row]],
    entries: Sequence[Row],
    epoch: int,
    shift: int,
    place: str,
    mark: tuple[str, str],
) -> Moved:
    if tx.one("repository_get") is not None:
        raise StoreError(
            "the new store already has this repository",
            code="STORE_NOT_EMPTY",
            hint="name an empty store, or set [store] url to this one and use it: landlane store adopt",
        )
    for table, rows in tables.items():
        for row in rows:
            tx.run(f"import_{table}", **_shifted(row, shift))
    for row in entries:
        tx.run("import_journal", **row)
    tx.continue_numbers()
    new_epoch = max(epoch, tx.epoch) + 1
    tx.run("meta_set", key="epoch", value=str(new_epoch))
    tx.run("meta_set", key=mark[0], value=mark[1])
    tx.record("store.moved", "", "", {"epoch": new_epoch, "to": show_place(place)})
    claims = len({row["token"] for row in tables["claims"]})
    return Moved(
        place=show_place(place),
        entries=len(entries),
        claims=claims,
        sessions=len(tables["sessions"]),
        epoch=new_epoch,
    )


_INSTANTS = frozenset(
    {
        "started_at",
        "seen_at",
        "lapses_at",
        "ended_at",
        "granted_at",
        "created_at",
        "ready_at",
        "taken_at",
        "until",
        "freed_at",
        "rank",
    }
)


def _shifted(row: Row, shift: int) -> dict[str, Any]:
    """Return the columns of a row with its instants converted to the other store's clock."""
    named: dict[str, Any] = dict(row)
    for column in _INSTANTS & named.keys():
        if named[column] or column == "rank":  # skip unset instants
            named[column] += shift
    return named
