"""Connects to PostgreSQL, creates or upgrades the schema `landlane` there, and refuses a newer one."""

from __future__ import annotations

from typing import cast

from landlane.errors import StoreError
from landlane.ids import new_uuid
from landlane.store.postgres.errors import translate, without_password
from landlane.store.statements import read_migrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import psycopg

SCHEMA = 5
READABLE_BY = 1
_PREPARING = 0x494C434B  # the lock for creating and upgrading, the same in every version
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


def connect(url: str, wait_ms: int) -> psycopg.Connection[Any]:
    """A connection in which our tables are found and no lock is waited for too long.

    Raises:
        StoreError: the driver is not installed, or the server cannot be reached.
    """
    try:
        import psycopg  # noqa: PLC0415 - an extra, and dear to import
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415
    except ImportError as error:
        raise StoreError(
            "the driver for PostgreSQL is not installed",
            code="POSTGRES_MISSING",
            hint="pip install 'landlane[postgres]'",
        ) from error
    try:
        said = conninfo_to_dict(url)
        line: dict[str, Any] = {name: number for name, number in _LINE.items() if name not in said}
        connection = psycopg.connect(
            url, autocommit=True, prepare_threshold=1, connect_timeout=max(2, wait_ms // 3000), **line
        )
        connection.execute(cast("Any", _SESSION_SETTINGS.format(wait_ms=int(wait_ms))))
    except psycopg.Error as error:
        raise translate(error, url) from error
    return connection


def prepare_schema(connection: psycopg.Connection[Any], url: str) -> None:
    """Create or upgrade our tables.

    Raises:
        StoreError: they were made by a newer program.
    """
    import psycopg  # noqa: PLC0415

    try:
        facts = read_facts(connection)
        if facts.get("schema") != str(SCHEMA):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_PREPARING,))
                facts = _upgrade(connection, url)
    except psycopg.Error as error:
        raise translate(error, url) from error
    check_facts(facts, url)


def read_facts(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """What the store says of itself; nothing when it is not there yet."""
    # Not to_regclass: it may answer from what the connection remembers, and another has just made our tables.
    found = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'landlane' AND tablename = 'meta'"
    ).fetchone()
    if found is None:
        return {}
    return dict(connection.execute("SELECT key, value FROM landlane.meta").fetchall())


def check_facts(facts: dict[str, str], url: str) -> None:
    """Refuse a store that this program must not use."""
    place = without_password(url)
    if int(facts.get("readable_by", "0")) > SCHEMA:
        raise StoreError(
            f"the store {place} is of a newer landlane (schema {facts['schema']}; this one knows {SCHEMA})",
            code="STORE_NEWER",
            hint="upgrade landlane here: pip install --upgrade landlane",
        )


def _upgrade(connection: psycopg.Connection[Any], url: str) -> dict[str, str]:
    facts = read_facts(connection)
    check_facts(facts, url)
    have = int(facts.get("schema", "0"))
    connection.execute("CREATE SCHEMA IF NOT EXISTS landlane")
    for version, script in read_migrations("postgres"):
        if version > have:
            connection.execute(cast("Any", script))
    if have < SCHEMA:
        new = {"schema": str(SCHEMA), "readable_by": str(READABLE_BY)}
        if not facts:
            new |= {"store_id": new_uuid(), "epoch": "1"}
        for key, fact in new.items():
            connection.execute(
                "INSERT INTO meta (key, value) VALUES (%s, %s)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, fact),
            )
    return read_facts(connection)
