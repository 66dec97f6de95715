"""Carrying a repository's state to another store, and building it anew from the journal's copy.

Both end with a new epoch of tokens, so that nothing given out before can be given out again; both read
everything back and compare before the old store is put out of use, and neither deletes anything.
"""

from __future__ import annotations

import os

from interlock.bootstrap import POINTER, STORE_NAME, House, open_store
from interlock.domain.journal import as_line, check_chain
from interlock.domain.patterns import parse
from interlock.errors import Malformed, StoreCorrupt, StoreError
from interlock.operations.repositories import newest_epoch
from interlock.store.mirror import read_journal, set_aside
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from interlock.bootstrap import AnyStore
    from interlock.domain.journal import Entry
    from interlock.ports.store import Change, Reading, Row

_CARRIED = ("repositories", "sessions", "processes", "claims", "lapsed")


@value
class Moved:
    """What was carried over."""

    place: str
    entries: int
    claims: int
    sessions: int
    epoch: int


def move_store(house: House, place: str) -> Moved:
    """Carry everything to the store at `place`, and use that from now on.

    Raises:
        StoreError: the target holds this repository already, or what arrived is not what was sent.
    """
    if os.environ.get("INTERLOCK_STORE"):
        raise Malformed(
            "INTERLOCK_STORE decides where the store is, so moving it would change nothing",
            code="STORE_PINNED",
            hint="unset INTERLOCK_STORE, move, and set it to the new place where it is needed",
        )
    target = open_store(place, house.folder, house.store.repository, house.settings)
    try:
        if _is_same(house.store, target):
            raise Malformed("the store is there already", code="STORE_SAME", hint="name another place")
        moved = _carry(house, target, place)
    finally:
        target.close()
    _point_to(house.folder, place if "://" in place else os.path.abspath(place))
    return moved


def _is_same(one: AnyStore, other: AnyStore) -> bool:
    def store_id(reading: Reading) -> Row | None:
        return reading.one("meta_get", key="store_id")

    return one.view(store_id) == other.view(store_id)


def _carry(house: House, target: AnyStore, place: str) -> Moved:
    """One transaction here that keeps writers out, and one there that writes everything."""
    source = house.store

    def send(tx: Change) -> Moved:
        source.stop_writers(tx)
        tables = {table: tx.all(f"carry_{table}") for table in _CARRIED}
        entries = tx.all("carry_journal")
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


def _shift(source: AnyStore, target: AnyStore, now: int) -> int:
    """What to add to an instant of one store to get the same instant of the other."""
    return target.view(lambda reading: reading.now) - now


def _receive(
    tx: Change, tables: dict[str, list[Row]], entries: Sequence[Row], epoch: int, shift: int, place: str
) -> Moved:
    if tx.one("repository_get") is not None:
        raise StoreError(
            "the target store holds this repository already",
            code="STORE_NOT_EMPTY",
            hint="use it by setting [store] url or INTERLOCK_STORE, or name an empty one",
        )
    for table, rows in tables.items():
        for row in rows:
            tx.run(f"arrive_{table}", **_named(table, row, shift))
    for row in entries:
        tx.run("arrive_journal", **_named("journal", row, 0))
    tx.one("journal_continue")
    new_epoch = max(epoch, tx.epoch) + 1
    tx.run("meta_set", key="epoch", value=str(new_epoch))
    tx.record("store.moved", "", "", {"epoch": new_epoch, "to": _shown(place)})
    claims = len({row[2] for row in tables["claims"]})
    return Moved(
        place=_shown(place),
        entries=len(entries),
        claims=claims,
        sessions=len(tables["sessions"]),
        epoch=new_epoch,
    )


_COLUMNS = {
    "repositories": "id ignore_case",
    "sessions": "id agent generation kind role machine secret_hash lease_ms started_at seen_at shortest_ms"
    " lapses_at ended_at",
    "processes": "boot_id namespace pid started session",
    "claims": "key rest token branch session pattern kind mode ttl_ms granted_at task note",
    "lapsed": "agent pattern kind mode ttl_ms token ended_at",
    "journal": "position number at kind agent session data hash",
}
_INSTANTS = frozenset({"started_at", "seen_at", "lapses_at", "ended_at", "granted_at"})


def _named(table: str, row: Row, shift: int) -> dict[str, Any]:
    named = dict(zip(_COLUMNS[table].split(), row, strict=True))
    for column in _INSTANTS & named.keys():
        if named[column] is not None:
            named[column] += shift
    return named


def _shown(place: str) -> str:
    if "://" not in place:
        return place
    from interlock.store.postgres_errors import without_password

    return without_password(place)


def _point_to(folder: str, place: str) -> None:
    """Remember the new place for every later command here; it may hold a password: only for this user."""
    path = os.path.join(folder, POINTER)
    scratch = f"{path}.{os.getpid()}.new"
    file = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, (place + "\n").encode())
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(scratch, path)


@value
class Rebuilt:
    """What was built from the journal's copy."""

    entries: int
    claims: int
    sessions: int
    epoch: int
    kept: str
    unreadable: int


def rebuild_store(folder: str, repository_id: str, *, ignore_case: bool, wait_ms: int = 30_000) -> Rebuilt:
    """Build the SQLite store anew from `journal.jsonl`, and keep the old one beside it.

    Raises:
        StoreCorrupt: there is no journal to build from, or its chain is broken.
    """
    from interlock.store.sqlite import SqliteStore

    path = os.path.join(folder, STORE_NAME)
    journal = os.path.join(folder, "journal.jsonl")
    entries, unreadable = _readable(journal)
    if not entries:
        raise StoreCorrupt(
            f"there is no journal at {journal} to rebuild from",
            code="NO_JOURNAL",
            hint="restore a backup of the folder, or remove it to begin anew",
        )
    scratch = os.path.join(folder, "rebuilding")
    os.makedirs(scratch, exist_ok=True)
    new = os.path.join(scratch, STORE_NAME)
    _remove_database(new)
    store = SqliteStore(new, repository_id, wait_ms=wait_ms)
    try:
        rebuilt = store.change(lambda tx: _replay(tx, entries, ignore_case=ignore_case))
    finally:
        store.close()  # the last to close empties the log into the file
    if unreadable:  # what cannot be trusted is kept, but no longer followed
        set_aside(journal)
        with open(journal, "w", encoding="utf-8") as file:
            file.writelines(as_line(entry) + "\n" for entry in entries)
    kept = _put_in_place(path, new)
    return Rebuilt(kept=os.path.basename(kept), unreadable=unreadable, **rebuilt)


def _readable(journal: str) -> tuple[list[Entry], int]:
    """The longest stretch of whole, unbroken entries from the start, and how many lines come behind it."""
    entries: list[Entry] = []
    lines = 0
    try:
        with open(journal, "rb") as file:
            lines = sum(1 for _ in file)
        entries.extend(read_journal(journal))
    except (OSError, ValueError):
        pass
    good = len(entries)
    while good and check_chain(entries[:good]).trouble:
        good = _first_trouble(entries[:good])
    return entries[:good], lines - good


def _first_trouble(entries: list[Entry]) -> int:
    low, high = 0, len(entries)
    while low < high:  # the longest prefix whose chain is whole
        middle = (low + high + 1) // 2
        if check_chain(entries[:middle]).trouble:
            high = middle - 1
        else:
            low = middle
    return low


def _put_in_place(path: str, new: str) -> str:
    kept = ""
    if os.path.exists(path):
        kept = set_aside(path)
        for ending in ("-wal", "-shm"):
            if os.path.exists(path + ending):
                os.replace(path + ending, kept + ending)
    os.replace(new, path)
    _remove_database(new)
    return kept


def _remove_database(path: str) -> None:
    for ending in ("", "-wal", "-shm", ".lock"):
        if os.path.exists(path + ending):
            os.unlink(path + ending)


def _replay(tx: Change, entries: list[Entry], *, ignore_case: bool) -> dict[str, int]:
    """Enter all entries as they were, then what they say is live: sessions and claims."""
    sessions: dict[str, tuple[Entry, dict[str, Any]]] = {}
    claims: dict[int, tuple[Entry, dict[str, Any]]] = {}
    tx.run("repository_add", ignore_case=int(ignore_case))
    for entry in entries:
        tx.run(
            "arrive_journal",
            position=entry.position,
            number=entry.number,
            at=entry.at,
            kind=entry.kind,
            agent=entry.agent,
            session=entry.session,
            data=entry.data,
            hash=entry.hash,
        )
        _follow(entry, sessions, claims)
    for entry, facts in sessions.values():
        is_over = facts.pop("is_over", False)
        tx.run("session_add", session=entry.session, agent=entry.agent, **facts)
        if is_over:  # kept for its generation: the next one must be higher
            tx.run("session_end", session=entry.session)
    for entry, facts in claims.values():
        _restore_claim(tx, entry, facts, ignore_case=ignore_case)
    alive = {row[0] for row in tx.all("sessions_live")}
    for session in alive:
        _restore_lease(tx, session)
    epoch = max(tx.epoch, newest_epoch(entries)) + 1
    tx.run("meta_set", key="epoch", value=str(epoch))
    tx.record("store.rebuilt", "", "", {"epoch": epoch, "entries": len(entries)})
    return {"entries": len(entries), "claims": len(claims), "sessions": len(alive), "epoch": epoch}


def _follow(
    entry: Entry,
    sessions: dict[str, tuple[Entry, dict[str, Any]]],
    claims: dict[int, tuple[Entry, dict[str, Any]]],
) -> None:
    facts = entry.facts()
    if entry.kind == "session.joined":
        sessions[entry.session] = (entry, facts)
    elif entry.kind == "session.role":
        sessions[entry.session][1]["role"] = facts["role"]
    elif entry.kind in ("session.left", "session.lapsed", "session.gone"):
        sessions[entry.session][1]["is_over"] = True
    elif entry.kind == "claim.taken":
        claims[facts["token"]] = (entry, facts)
    elif entry.kind in ("claim.released", "claim.lapsed"):
        claims.pop(facts["token"], None)


def _restore_claim(tx: Change, entry: Entry, facts: dict[str, Any], *, ignore_case: bool) -> None:
    pattern = parse(facts["pattern"], literal=facts["kind"] == "literal", ignore_case=ignore_case)
    for index, branch in enumerate(pattern.branches):
        tx.run(
            "claim_add",
            key=branch.key,
            token=facts["token"],
            branch=index,
            rest=branch.rest,
            session=entry.session,
            pattern=pattern.text,
            kind=pattern.kind,
            mode=facts["mode"],
            ttl_ms=facts["ttl_ms"],
            granted_at=tx.now,
            task=facts["task"],
            note=facts["note"],
        )


def _restore_lease(tx: Change, session: str) -> None:
    row = tx.one("session_get", session=session)
    assert row is not None
    shortest = min([row[7], *(claim[10] for claim in tx.all("claims_of", session=session))])
    tx.run(
        "session_set_lease",
        session=session,
        seen_at=tx.now,
        shortest_ms=shortest,
        lapses_at=tx.now + shortest,
    )
