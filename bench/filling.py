"""Fills a store with live claims of many sessions, without the long way through the operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.store.sqlite.store import SqliteStore

HOLDERS = 64
PER_FOLDER = 100
_LEASE_MS = 86_400_000
_SESSION = """
INSERT INTO sessions (id, repository, agent, generation, kind, role, machine, secret_hash, lease_ms,
                      started_at, seen_at, shortest_ms, lapses_at)
VALUES (?, ?, ?, 1, 'agent', '', 'bench', '', ?, ?, ?, ?, ?)
"""
_CLAIM = """
INSERT INTO claims (repository, key, token, branch, rest, session, pattern, kind, mode, ttl_ms, granted_at,
                    task, note)
VALUES (?, ?, ?, 0, ?, ?, ?, ?, 'exclusive', ?, ?, '', '')
"""


def fill(store: SqliteStore, claims: int) -> None:
    """Add so many live claims in one transaction: in each folder 97 files, two trees and a glob."""
    now = store.now()
    lease = (_LEASE_MS, now, now, _LEASE_MS, now + _LEASE_MS)
    db = store.db
    db.execute("BEGIN IMMEDIATE")
    db.executemany(_SESSION, [(holder(n), store.repository, f"holder{n}", *lease) for n in range(HOLDERS)])
    db.executemany(
        _CLAIM,
        (
            (store.repository, key, number + 1, rest, holder(number), pattern, kind, _LEASE_MS, now)
            for number, (key, rest, pattern, kind) in enumerate(_things(claims))
        ),
    )
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def holder(number: int) -> str:
    """The id of the session that holds the claim of this number."""
    return f"s-holder{number % HOLDERS}"


def folder_of(number: int) -> str:
    """The folder of this number."""
    return f"src/p{number // 100:03d}/m{number % 100:02d}"


def _things(count: int) -> Iterator[tuple[str, str | None, str, str]]:
    """Key, rest, pattern and kind of so many things to hold, no two of which overlap, folder by folder."""
    for number in range(count):
        folder, place = divmod(number, PER_FOLDER)
        key = folder_of(folder)
        if place == 0:
            yield key, "*.lock", f"{key}/*.lock", "glob"
        elif place <= 2:
            yield f"{key}/tree{place}", None, f"{key}/tree{place}", "literal"
        else:
            yield f"{key}/file{place:02d}.py", None, f"{key}/file{place:02d}.py", "literal"
