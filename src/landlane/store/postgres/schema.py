"""Connect to PostgreSQL, create or migrate the schema `landlane`, and refuse one of another version."""

from __future__ import annotations

from typing import cast

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from landlane.errors import StoreCorrupt
from landlane.ids import new_uuid
from landlane.store.postgres.errors import translate, without_password
from landlane.store.schema_version import check_version, is_current, scripts_after, version_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_PREPARING = 0x4C4E444C  # the advisory lock ("LNDL") for creating and migrating, the same in every version
# Every statement of ours finds its rows by an index, whatever is asked for. Left to itself the server would
# plan the larger ones anew for each call, which takes longer than running them, or keep a plan from the time
# when a table was small enough to be read as a whole.
_SESSION_SETTINGS = (
    "SET search_path TO landlane; SET plan_cache_mode TO force_generic_plan; SET enable_seqscan TO off; "
    # A client that froze inside its transaction holds locks that nobody else can take from it; one whose
    # network is gone without a word is found out by asking whether it is there.
    "SET lock_timeout TO {wait_ms}; SET idle_in_transaction_session_timeout TO 60000; "
    "SET tcp_keepalives_idle TO 10; SET tcp_keepalives_interval TO 5; SET tcp_keepalives_count TO 3; "
    "SET tcp_user_timeout TO 20000"
)
# The same for our side: a call into a network that swallows everything ends, rather than waiting a quarter
# of an hour. What the URL says goes before.
_LINE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20000,
}
_WAY_OUT = "start with an empty store, in psql: ALTER SCHEMA landlane RENAME TO landlane_older"


def connect(url: str, wait_ms: int) -> psycopg.Connection[Any]:
    """A connection in which our tables are found and no lock is waited for too long.

    Raises:
        StoreError: the server cannot be reached.
    """
    try:
        said = conninfo_to_dict(url)
        line: dict[str, Any] = {name: number for name, number in _LINE.items() if name not in said}
        connection = psycopg.connect(
            url,
            autocommit=True,
            prepare_threshold=1,
            row_factory=cast("Any", dict_row),
            connect_timeout=max(2, wait_ms // 3000),
            **line,
        )
        connection.execute(cast("Any", _SESSION_SETTINGS.format(wait_ms=int(wait_ms))))
    except psycopg.Error as error:
        raise translate(error, url) from error
    return connection


def prepare_schema(connection: psycopg.Connection[Any], url: str) -> None:
    """Create or migrate our tables.

    Raises:
        StoreCorrupt: the schema belongs to another program.
        StoreError: they were written by a newer or an older Landlane.
    """
    try:
        if not is_current(_checked_facts(connection, url)):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_PREPARING,))
                _migrate(connection, _checked_facts(connection, url))
    except psycopg.errors.UndefinedColumn as error:  # a table `meta`, but not ours
        raise _not_a_store(url) from error
    except psycopg.Error as error:
        raise translate(error, url) from error


def _checked_facts(connection: psycopg.Connection[Any], url: str) -> dict[str, str]:
    """Return what the store says about itself, or nothing if it does not exist yet.

    Raises:
        StoreCorrupt: the schema belongs to another program.
        StoreError: it was written by a newer or an older Landlane.
    """
    # Not to_regclass: it may answer from the connection's cache when another one has just created our tables.
    table = connection.execute(
        "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'landlane'"
        " ORDER BY tablename <> 'meta' LIMIT 1"
    ).fetchone()
    if table is None:
        return {}
    if table["tablename"] != "meta":
        raise _not_a_store(url)
    rows = connection.execute("SELECT key, value FROM landlane.meta").fetchall()
    facts = {row["key"]: row["value"] for row in rows}
    if "schema" not in facts:
        raise _not_a_store(url)
    check_version(facts, without_password(url), lambda: _WAY_OUT)
    return facts


def _not_a_store(url: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"the schema landlane in {without_password(url)} belongs to another program",
        code="NOT_A_STORE",
        hint="set LANDLANE_STORE to the URL of another database; this one was left as it is",
    )


def _migrate(connection: psycopg.Connection[Any], facts: dict[str, str]) -> None:
    scripts = scripts_after("postgres", int(facts.get("schema", "0")))
    if not scripts:
        return  # a newer store that this program may use, or another process was faster
    connection.execute("CREATE SCHEMA IF NOT EXISTS landlane")
    for script in scripts:
        connection.execute(cast("Any", script))
    new = version_facts()
    if not facts:
        new |= {"store_id": new_uuid(), "epoch": "1"}
    for key, fact in new.items():
        connection.execute(
            "INSERT INTO meta (key, value) VALUES (%s, %s)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, fact),
        )
