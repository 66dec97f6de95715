"""Rebuild the SQLite store from `journal.jsonl` when the file is damaged or missing.

The entries are copied unchanged into a new file, and the live state is restored from them: sessions with
their secrets and generations, claims with their tokens. A new epoch keeps a token that the journal does not
know from being issued twice. The old file is kept. Writers wait meanwhile, and processes that have the old
file open continue with the new one.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from landlane.app.plain_files import (
    move_aside,
    name_aside,
    read_copied_store_id,
    read_journal,
    read_store_id,
    write_copied_store_id,
)
from landlane.app.repository_record import list_repositories, moved_key, newest_epoch
from landlane.app.store_place import JOURNAL, STORE_NAME
from landlane.claims.take import add_claim, claims_of
from landlane.errors import StoreCorrupt, StoreError
from landlane.files import open_regular, read_regular, write_atomically
from landlane.patterns.pattern import LITERAL, parse
from landlane.sessions.client_sessions import replay_binding
from landlane.sessions.leases import find_session
from landlane.sessions.model import Claim, ClaimMode
from landlane.state.keys import replay_state
from landlane.state.numbers import replay_number
from landlane.state.once import replay_once
from landlane.state.slots import replay_slot
from landlane.store.file_lock import FairLock
from landlane.store.journal_chain import EMPTY_CHAIN_HASH, check_chain, format_line
from landlane.store.records import NOUNS as RECORD_NOUNS
from landlane.store.records import replay_record
from landlane.store.sqlite import database
from landlane.store.sqlite.store import SqliteStore, file_at
from landlane.tasks.replay import TaskReplay
from landlane.text import shell_path, short_path
from landlane.units import count
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from landlane.store.interface import Transaction
    from landlane.store.journal_chain import JournalEntry

    Facts = dict[str, Any]


_OVER = ("session.left", "session.lapsed", "session.gone")
_REPLAYED = {
    "state.set": replay_state,
    "number.given": replay_number,
    "slot.taken": replay_slot,
    "slot.freed": replay_slot,
    "once.started": replay_once,
    "once.ended": replay_once,
    "client.bound": replay_binding,
}


@value
class Rebuilt:
    """The result of a rebuild."""

    entries: int
    claims: int
    sessions: int
    epoch: int
    kept: str
    unreadable: int


def rebuild_store(
    folder: str, repository_id: str, *, ignore_case: bool, wait_ms: int = 30_000, path: str = ""
) -> Rebuilt:
    """Rebuild the store from the journal in the state folder, and keep the old file beside it.

    The store is at `path`, by default in the state folder.

    `ignore_case` is only used for a journal that does not record how paths are compared.

    Raises:
        StoreCorrupt: there is no journal to build from.
        StoreError: the store was written by a newer version, stayed locked, or holds other repositories.
    """
    path = path or os.path.join(folder, STORE_NAME)
    with _lock_store(path, folder, repository_id, wait_ms) as old:
        _refuse_shared(path, repository_id, old)
        return _rebuild(path, folder, repository_id, old, ignore_case=ignore_case)


def repair_store(
    folder: str, repository_id: str, *, ignore_case: bool, wait_ms: int = 30_000, path: str = ""
) -> Rebuilt | None:
    """Like `rebuild_store`, but return None when another process has repaired the store meanwhile."""
    path = path or os.path.join(folder, STORE_NAME)
    with _lock_store(path, folder, repository_id, wait_ms) as old:
        if old is not None and not _is_damaged(old, repository_id):
            return None
        _refuse_shared(path, repository_id, old)
        return _rebuild(path, folder, repository_id, old, ignore_case=ignore_case)


def _is_damaged(store: SqliteStore, repository_id: str) -> bool:
    try:
        return bool(store.find_damage()) or repository_id not in list_repositories(store)
    except StoreCorrupt:
        return True


def _refuse_shared(path: str, repository_id: str, old: SqliteStore | None) -> None:
    """Refuse to replace a store that has moved, or in which other repositories have their state, too."""
    if old is None:
        return
    try:
        moved = old.view(lambda snapshot: snapshot.one("meta_get", key=moved_key(repository_id)))
        others = set(list_repositories(old)) - {repository_id}
    except StoreError:
        return  # it cannot be read any more
    if moved is not None:
        raise database.store_moved_error(path, moved["value"])
    if others:
        raise StoreError(
            f"the store {path} also holds {count(len(others), 'other repository', 'other repositories')},"
            " which a rebuild would lose",
            code="STORE_SHARED",
            hint="restore a backup of it",
        )


@contextmanager
def _lock_store(path: str, folder: str, repository_id: str, wait_ms: int) -> Generator[SqliteStore | None]:
    """Hold the exclusive lock to replace the file; yield the current store if it can be read."""
    lock = old = None
    try:
        while True:
            before = file_at(path)
            old = _open_old(path, folder, repository_id, wait_ms)
            lock = lock or FairLock(path + ".lock")
            if not lock.acquire(wait_ms / 1000):
                raise database.busy_error(path, wait_ms / 1000)
            if file_at(path) == before:
                break
            lock.release()  # another process has just replaced the file: open that one
        yield old
    finally:
        if old is not None:
            old.close()
        if lock is not None:
            lock.close()


def _open_old(path: str, folder: str, repository_id: str, wait_ms: int) -> SqliteStore | None:
    try:
        return SqliteStore(path, repository_id, wait_ms=wait_ms, may_create=False)
    except StoreCorrupt as error:
        if error.code == "NOT_A_STORE" and path != os.path.join(folder, STORE_NAME):
            raise  # the file of another program outside of the state folder
        return None
    except StoreError as error:
        if error.code == "STORE_OLDER":
            return None
        raise


def _rebuild(
    path: str, folder: str, repository_id: str, old: SqliteStore | None, *, ignore_case: bool
) -> Rebuilt:
    journal = os.path.join(folder, JOURNAL)
    entries, unreadable = _all_entries(journal, folder, old)
    if not entries:
        raise StoreCorrupt(
            f"there is no {short_path(journal)} to rebuild the store from",
            code="NO_JOURNAL",
            hint=f"restore a backup, or start with an empty state: rm -r {shell_path(folder)}",
        )
    if old is not None:
        old.close()  # before its file is set aside, so that its log is checkpointed
    new = f"{path}.rebuilding"
    _remove_database(new)
    store = SqliteStore(new, repository_id)
    try:
        rebuilt = store.change(lambda tx: _replay(tx, entries, ignore_case=ignore_case))
        store_id = read_copied_store_id(folder) or read_store_id(store)
        # It continues where the old one ended, and so does its journal copy.
        store.change(lambda tx: tx.run("meta_set", key="store_id", value=store_id))
    finally:
        store.close()  # the last close checkpoints the log
    if unreadable:  # an untrusted copy is kept, but no longer extended
        write_atomically(name_aside(journal), read_regular(journal))
        write_atomically(journal, "".join(format_line(entry) + "\n" for entry in entries))
    kept = set_database_aside(path)
    os.replace(new, path)
    write_copied_store_id(folder, store_id)
    _remove_database(new)
    return Rebuilt(kept=os.path.basename(kept), unreadable=unreadable, **rebuilt)


def _all_entries(journal: str, folder: str, old: SqliteStore | None) -> tuple[list[JournalEntry], int]:
    """Return the entries of the copy, then those of the old store, and the number of unusable lines."""
    entries, lines = [], 0
    copied_id = read_copied_store_id(folder)
    if _store_id_or(old, copied_id) == copied_id:  # else it is a copy of another store
        entries, lines = _read_copy(journal)
    good = _intact_prefix(entries)
    unreadable = lines - len(good)
    if old is not None:
        try:
            while page := old.entries(len(good), 1000):
                intact = _intact_prefix(
                    page, after=len(good), head=good[-1].hash if good else EMPTY_CHAIN_HASH
                )
                good += intact
                if len(intact) < len(page):
                    break
        except StoreError:
            pass  # damaged from here on
    return good, unreadable


def _store_id_or(store: SqliteStore | None, unknown: str) -> str:
    """Return the id of a store, or `unknown` if it cannot be read."""
    try:
        return (read_store_id(store) if store is not None else "") or unknown
    except StoreError:
        return unknown


def _read_copy(journal: str) -> tuple[list[JournalEntry], int]:
    """Return the entries of the copy up to the first invalid line, and the number of lines."""
    entries: list[JournalEntry] = []
    lines = 0
    try:
        with open(journal, "rb", opener=open_regular) as file:
            lines = sum(1 for _ in file)
        entries.extend(read_journal(journal))
    except (OSError, ValueError):
        pass
    return entries, lines


def _intact_prefix(
    entries: list[JournalEntry], *, after: int = 0, head: str = EMPTY_CHAIN_HASH
) -> list[JournalEntry]:
    """Return the longest prefix whose hash chain is intact."""
    low, high = 0, len(entries)
    middle = high  # usually all of it is intact
    while low < high:
        if check_chain(entries[:middle], after=after, head=head).trouble:
            high = middle - 1
        else:
            low = middle
        middle = (low + high + 1) // 2
    return entries[:low]


def set_database_aside(path: str) -> str:
    """Rename a SQLite file to keep it; return the new name, or an empty string when it had no content.

    Its log is renamed too, even without the file: SQLite would apply it to the next file.
    """
    if not os.path.lexists(path):  # its log alone may be there
        with open(path, "xb"):
            pass
    kept = move_aside(path)
    for ending in ("-wal", "-shm"):
        if os.path.exists(path + ending):
            os.replace(path + ending, kept + ending)
    if not os.path.isfile(kept) or os.path.getsize(kept) or os.path.exists(kept + "-wal"):
        return kept
    _remove_database(kept)
    return ""


def _remove_database(path: str) -> None:
    for ending in ("", "-wal", "-shm", ".lock"):
        if os.path.exists(path + ending):
            os.unlink(path + ending)


class _LiveState:
    """The state that the entries add up to: sessions, live claims and lost ones."""

    def __init__(self, *, ignore_case: bool) -> None:
        self.ignore_case = ignore_case
        self.sessions: dict[str, tuple[JournalEntry, Facts]] = {}
        self.over: set[str] = set()
        self.claims: dict[int, tuple[JournalEntry, Facts]] = {}
        self.lapsed: dict[tuple[str, str], Facts] = {}
        self.tasks = TaskReplay()

    def add(self, entry: JournalEntry) -> None:
        facts = entry.facts()
        self.tasks.add(entry)
        if entry.kind == "session.joined":
            self.sessions[entry.session] = (entry, facts)
        elif entry.kind == "session.role":
            self.sessions[entry.session][1]["role"] = facts["role"]
        elif entry.kind in _OVER:
            self.over.add(entry.session)
        elif entry.kind == "claim.taken":
            self.claims[facts["token"]] = (entry, facts)
        elif entry.kind == "claim.passed" and facts["token"] in self.claims:
            taken, claim_facts = self.claims[facts["token"]]
            self.claims[facts["token"]] = (replace(taken, session=facts["to"]), claim_facts)
        elif entry.kind in ("claim.released", "claim.lapsed"):
            self._end_claim(entry, facts)
        elif entry.kind in ("repository.begun", "repository.case"):
            self.ignore_case = bool(facts["ignore_case"])

    def _end_claim(self, entry: JournalEntry, facts: Facts) -> None:
        _, taken = self.claims.pop(facts["token"], (entry, None))
        if taken is not None and "holder" in facts:  # released by a person, against the will of its holder
            self.lapsed[facts["holder"], facts["pattern"]] = taken
        elif taken is None or entry.kind == "claim.released":
            self.lapsed.pop((entry.agent, facts["pattern"]), None)
        else:
            self.lapsed[entry.agent, facts["pattern"]] = taken


def _replay(tx: Transaction, entries: list[JournalEntry], *, ignore_case: bool) -> dict[str, int]:
    """Write all entries unchanged, then the live state."""
    state = _LiveState(ignore_case=ignore_case)
    for entry in entries:
        tx.run("import_journal", **as_dict(entry))
        state.add(entry)
        if entry.kind in _REPLAYED:
            _REPLAYED[entry.kind](tx, entry)
        elif entry.kind.partition(".")[0] in RECORD_NOUNS:
            replay_record(tx, entry)
    tx.run("repository_add", ignore_case=int(state.ignore_case))
    for session, (entry, facts) in state.sessions.items():
        tx.run("session_add", session=session, agent=entry.agent, **facts)
        if session in state.over:  # kept for its generation, which the next session must exceed
            tx.run("session_end", session=session)
    for entry, facts in state.claims.values():
        _restore_claim(tx, entry, facts, ignore_case=state.ignore_case)
    for (agent, _), facts in state.lapsed.items():
        named = {key: facts[key] for key in ("pattern", "kind", "mode", "ttl_ms", "token")}
        tx.run("lapsed_add", agent=agent, ended_at=tx.now, **named)
    state.tasks.write(tx, ignore_case=state.ignore_case)
    alive = state.sessions.keys() - state.over
    for session in alive:
        _restore_lease(tx, session)
    epoch = max(tx.epoch, newest_epoch(entries)) + 1
    tx.run("meta_set", key="epoch", value=str(epoch))
    tx.continue_numbers()
    tx.record("store.rebuilt", "", "", {"epoch": epoch, "entries": len(entries)})
    return {"entries": len(entries), "claims": len(state.claims), "sessions": len(alive), "epoch": epoch}


def _restore_claim(tx: Transaction, entry: JournalEntry, facts: Facts, *, ignore_case: bool) -> None:
    pattern = parse(facts["pattern"], literal=facts["kind"] == LITERAL, ignore_case=ignore_case)
    claim = Claim(
        token=facts["token"],
        pattern=pattern.text,
        kind=pattern.kind,
        mode=ClaimMode(facts["mode"]),
        session=entry.session,
        agent=entry.agent,
        task=facts["task"],
        note=facts["note"],
        ttl_ms=facts["ttl_ms"],
        granted_at=tx.now,
        until=tx.now + facts["ttl_ms"],
        alternatives=pattern.alternatives,
    )
    add_claim(tx, claim)


def _restore_lease(tx: Transaction, session: str) -> None:
    known = find_session(tx, session)
    assert known is not None
    shortest = min([known.lease_ms, *(claim.ttl_ms for claim in claims_of(tx, session))])
    tx.run(
        "session_set_lease",
        session=session,
        seen_at=tx.now,
        shortest_ms=shortest,
        lapses_at=tx.now + shortest,
    )
