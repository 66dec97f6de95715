"""The peers: the least that a claim can be in each database, written as one would write it by hand."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import LiteralString

_SQLITE_SCHEMA = """
CREATE TABLE claim (
    token INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, owner TEXT NOT NULL, expires REAL NOT NULL);
CREATE UNIQUE INDEX claim_path ON claim (path);
"""
_LIVE = "SELECT owner FROM claim WHERE path IN (?,?,?,?) AND expires>? LIMIT 1"
_BELOW = "SELECT owner FROM claim WHERE path>? AND path<? AND expires>? LIMIT 1"
_INSERT = "INSERT INTO claim(path,owner,expires) VALUES(?,?,?)"

_LEASE_SECONDS = 1800.0


def create_bare_sqlite(path: str) -> None:
    """Make the file with its one table, in WAL mode like ours."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.executescript(_SQLITE_SCHEMA)
    db.close()


class BareSqlite:
    """BEGIN IMMEDIATE; is the path, a folder above it or anything below it held?; INSERT; COMMIT."""

    def __init__(self, path: str, owner: str) -> None:
        # Waiting is left to SQLite's own busy_timeout, as is usual.
        self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._db.execute("PRAGMA synchronous=FULL")
        self._owner = owner

    def claim(self, path: str) -> None:
        """Claim a path of at most four names that must be free."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        now = time.time()
        names = path.split("/")
        way = ["/".join(names[:depth]) for depth in range(1, len(names) + 1)]
        way = (way + [path] * 4)[:4]
        held = db.execute(_LIVE, (*way, now)).fetchone()
        held = held or db.execute(_BELOW, (path + "/", path + "0", now)).fetchone()
        assert held is None, f"{path} was not free"
        db.execute(_INSERT, (path, self._owner, now + _LEASE_SECONDS))
        db.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


_POSTGRES_SCHEMA: LiteralString = """
CREATE TABLE claim (
    token bigserial PRIMARY KEY, path text COLLATE "C" NOT NULL UNIQUE, owner text NOT NULL,
    expires timestamptz NOT NULL);
CREATE FUNCTION claim_alone(p text, way text[], who text) RETURNS bigint AS $$
DECLARE t bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(1);
    IF EXISTS (SELECT 1 FROM claim WHERE path = ANY (way) AND expires > now()) THEN RETURN NULL; END IF;
    IF EXISTS (SELECT 1 FROM claim WHERE path > p || '/' AND path < p || '0' AND expires > now())
    THEN RETURN NULL; END IF;
    INSERT INTO claim (path, owner, expires) VALUES (p, who, now() + interval '1800 s')
    RETURNING token INTO t;
    RETURN t;
END $$ LANGUAGE plpgsql
"""
_CLAIM_ALONE: LiteralString = "SELECT claim_alone(%s, %s, %s)"
_UPSERT: LiteralString = """
INSERT INTO claim (path, owner, expires) VALUES (%s, %s, now() + interval '1800 s')
ON CONFLICT (path) DO UPDATE
SET owner = excluded.owner, expires = excluded.expires, token = nextval('claim_token_seq')
WHERE claim.expires < now() RETURNING token
"""


def create_bare_postgres(url: str) -> None:
    """Make the one table, and the function that claims under one lock."""
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url, autocommit=True) as db:
        db.execute(_POSTGRES_SCHEMA)


class BarePostgres:
    """One INSERT … ON CONFLICT of the exact path: the unique index decides, overlaps are not seen."""

    def __init__(self, url: str, owner: str) -> None:
        import psycopg  # noqa: PLC0415 - an extra

        self._db: Any = psycopg.connect(url, autocommit=True, prepare_threshold=1)
        # The same as in our own connections; without it the function is planned again for each claim.
        self._db.execute("SET plan_cache_mode TO force_generic_plan; SET enable_seqscan TO off")
        self._owner = owner

    def claim(self, path: str) -> None:
        """Claim a path that must be free."""
        row = self._db.execute(_UPSERT, (path, self._owner)).fetchone()
        assert row is not None, f"{path} was not free"

    def claim_alone(self, path: str) -> None:
        """The same with overlaps seen, in a function that locks all others out."""
        names = path.split("/")
        way = ["/".join(names[:depth]) for depth in range(1, len(names) + 1)]
        (token,) = self._db.execute(_CLAIM_ALONE, (path, way, self._owner)).fetchone()
        assert token is not None, f"{path} was not free"
