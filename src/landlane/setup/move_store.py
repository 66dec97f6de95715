"""Move a repository's state to another store.

The move ends with a new token epoch, so that no token is issued twice. Everything is read back and compared
before the old store is retired, and nothing is deleted.
"""

from __future__ import annotations

import os

from landlane.app.plain_files import write_copied_store_id
from landlane.app.store_location import POINTER, STORE_NAME, open_store, sqlite_path
from landlane.errors import Malformed, StoreError
from landlane.files import write_whole
from landlane.repository import Repository
from landlane.setup.rebuild_store import set_database_aside
from landlane.store.journal_chain import check_chain
from landlane.store.postgres.errors import without_password
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.store.interface import Row, Store, Transaction


_TASKS = ("tasks", "task_after", "task_signs", "task_links", "task_counts")
_STATE = ("state", "state_versions", "numbers", "slots", "slot_places", "once")
_RECORDS = ("records", "record_counts", "verdicts", "runners")
_CLIENTS = ("client_sessions", "reads")
_CARRIED = (
    "repositories",
    "sessions",
    "processes",
    "claims",
    "lapsed",
    *_TASKS,
    *_STATE,
    *_RECORDS,
    *_CLIENTS,
)


@value
class Moved:
    """The numbers of what was moved."""

    place: str
    entries: int
    claims: int
    sessions: int
    epoch: int


def move_store(repo: Repository, place: str) -> Moved:
    """Copy everything to the store at `place`, and use that from now on.

    Raises:
        StoreError: the target holds this repository already, or what arrived is not what was sent.
    """
    if os.environ.get("LANDLANE_STORE"):
        raise Malformed(
            "LANDLANE_STORE decides where the store is, so moving it would change nothing",
            code="STORE_PINNED",
            hint="unset LANDLANE_STORE, move, and set it to the new place where it is needed",
        )
    if "://" not in place:
        place = sqlite_path(place)
        _make_room(place, repo)
    target = open_store(place, repo.state_folder, repo.store.repository, repo.settings, is_fresh=True)
    try:
        if _store_id(repo.store) == _store_id(target):
            raise Malformed("the store is there already", code="STORE_SAME", hint="name another place")
        moved = _carry(repo, target, place)
        write_copied_store_id(repo.state_folder, _store_id(target))  # the journal continues there
    finally:
        target.close()
    if place == os.path.join(repo.state_folder, STORE_NAME) and not repo.settings.store.url:
        _remove_pointer(repo.state_folder)
    else:
        _point_to(repo.state_folder, place)
    return moved


def _make_room(path: str, repo: Repository) -> None:
    """Set aside what an earlier move left at the place to which the state now returns."""
    if not os.path.exists(path):
        return
    repository = repo.store.repository
    store = open_store(path, repo.state_folder, repository, repo.settings)
    try:
        known, moved = store.view(
            lambda snapshot: (
                snapshot.all("repository_ids"),
                snapshot.one("meta_get", key=f"moved_to/{repository}"),
            )
        )
    finally:
        store.close()
    if moved is not None and [row["id"] for row in known] == [repository]:
        set_database_aside(path)


def _store_id(store: Store) -> str:
    row = store.view(lambda snapshot: snapshot.one("meta_get", key="store_id"))
    return str(row["value"]) if row else ""


def _carry(repo: Repository, target: Store, place: str) -> Moved:
    """Copy in one source transaction that blocks writers and one target transaction."""
    source = repo.store

    def send(tx: Transaction) -> Moved:
        source.stop_writers(tx)
        tables = {table: tx.all(f"export_{table}") for table in _CARRIED}
        entries = tx.all("export_journal")
        shift = _shift(source, target, tx.now)
        moved = target.change(lambda other: _receive(other, tables, entries, tx.epoch, shift, place))
        arrived = target.entries(0, moved.entries + 10)
        if check_chain(arrived).trouble or len(arrived) < moved.entries:
            raise StoreError(
                "what arrived is not what was sent; the old store stays in use",
                code="STORE_MOVE_FAILED",
                hint="look at the target, empty it, and try again",
            )
        tx.run("meta_set", key=f"moved_to/{source.repository}", value=_shown(place))
        return moved

    return source.change(send, areas={"": True, "//seal": True})


def _shift(source: Store, target: Store, now: int) -> int:
    """Return the offset from instants of one store to those of the other."""
    return target.view(lambda snapshot: snapshot.now) - now


def _receive(
    tx: Transaction, tables: dict[str, list[Row]], entries: Sequence[Row], epoch: int, shift: int, place: str
) -> Moved:
    if tx.one("repository_get") is not None:
        raise StoreError(
            "the target store holds this repository already",
            code="STORE_NOT_EMPTY",
            hint="use it by setting [store] url or LANDLANE_STORE, or name an empty one",
        )
    for table, rows in tables.items():
        for row in rows:
            tx.run(f"import_{table}", **_shifted(row, shift))
    for row in entries:
        tx.run("import_journal", **row)
    tx.one("journal_continue")
    new_epoch = max(epoch, tx.epoch) + 1
    tx.run("meta_set", key="epoch", value=str(new_epoch))
    tx.record("store.moved", "", "", {"epoch": new_epoch, "to": _shown(place)})
    claims = len({row["token"] for row in tables["claims"]})
    return Moved(
        place=_shown(place),
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


def _shown(place: str) -> str:
    if "://" not in place:
        return place
    return without_password(place)


def _remove_pointer(folder: str) -> None:
    """Remove the pointer, so that the store at the default place is used."""
    try:
        os.unlink(os.path.join(folder, POINTER))
    except FileNotFoundError:
        return


def _point_to(folder: str, place: str) -> None:
    """Record the new place for later commands; readable only by this user, as it may hold a password."""
    path = os.path.join(folder, POINTER)
    write_whole(path, place + "\n", mode=0o600, is_durable=True)
