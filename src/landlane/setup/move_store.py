"""Move a repository's state to another store.

The move ends with a new token epoch, so that no token is issued twice. Everything is read back and compared
before the old store is retired, and nothing is deleted.
"""

from __future__ import annotations

import contextlib
import os

from landlane.app.open import POINTER, STORE_NAME, open_store, sqlite_path
from landlane.app.plain_files import read_store_id, write_copied_store_id
from landlane.errors import Malformed, StoreError
from landlane.files import write_atomically
from landlane.repository import Repository
from landlane.setup.rebuild_store import set_database_aside
from landlane.store.journal_chain import check_chain
from landlane.store.postgres.database import hide_password
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.store.interface import Row, Store, Transaction


_MOVED = (
    *("repositories", "sessions", "processes", "claims", "lapsed"),
    *("tasks", "task_after", "task_signs", "task_links", "task_counts"),
    *("state", "state_versions", "numbers", "slots", "slot_places", "once"),
    *("records", "record_counts", "verdicts", "runners", "client_sessions", "reads"),
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
            "LANDLANE_STORE names the store, so a move would have no effect",
            code="STORE_PINNED",
            hint="unset it, then move the store: unset LANDLANE_STORE",
        )
    if "://" not in place:
        place = sqlite_path(place)
        _make_room(place, repo)
    target = open_store(place, repo.state_folder, repo.store.repository, repo.settings, is_fresh=True)
    try:
        if read_store_id(repo.store) == read_store_id(target):
            raise Malformed("the store is already there", code="STORE_SAME", hint="landlane store info")
        moved = _copy(repo, target, place)
        write_copied_store_id(repo.state_folder, read_store_id(target))  # the journal continues there
    finally:
        target.close()
    pointer = os.path.join(repo.state_folder, POINTER)
    if place == os.path.join(repo.state_folder, STORE_NAME) and not repo.settings.store.url:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(pointer)  # the store at the default place is used
    else:
        # Readable only by this user, as it may hold a password.
        write_atomically(pointer, place + "\n", mode=0o600, is_durable=True)
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


def _copy(repo: Repository, target: Store, place: str) -> Moved:
    """Copy in one source transaction that blocks writers and one target transaction."""
    source = repo.store

    def send(tx: Transaction) -> Moved:
        source.stop_writers(tx)
        tables = {table: tx.all(f"export_{table}") for table in _MOVED}
        entries = tx.all("export_journal")
        shift = target.view(lambda snapshot: snapshot.now) - tx.now  # between the clocks of the stores
        moved = target.change(lambda other: _receive(other, tables, entries, tx.epoch, shift, place))
        arrived = target.entries(0, moved.entries + 10)
        if check_chain(arrived).trouble or len(arrived) < moved.entries:
            raise StoreError(
                "the copy differs from the original; the old store stays in use",
                code="STORE_MOVE_FAILED",
                hint="empty the new store, then try again",
            )
        tx.run("meta_set", key=f"moved_to/{source.repository}", value=_without_password(place))
        return moved

    return source.change(send, areas={"": True, "//seal": True})


def _receive(
    tx: Transaction, tables: dict[str, list[Row]], entries: Sequence[Row], epoch: int, shift: int, place: str
) -> Moved:
    if tx.one("repository_get") is not None:
        raise StoreError(
            "the new store already has this repository",
            code="STORE_NOT_EMPTY",
            hint="name an empty store, or use that one: landlane config set store.url URL",
        )
    for table, rows in tables.items():
        for row in rows:
            tx.run(f"import_{table}", **_shifted(row, shift))
    for row in entries:
        tx.run("import_journal", **row)
    tx.one("journal_continue")
    new_epoch = max(epoch, tx.epoch) + 1
    tx.run("meta_set", key="epoch", value=str(new_epoch))
    tx.record("store.moved", "", "", {"epoch": new_epoch, "to": _without_password(place)})
    claims = len({row["token"] for row in tables["claims"]})
    return Moved(
        place=_without_password(place),
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


def _without_password(place: str) -> str:
    return hide_password(place) if "://" in place else place
