"""Connect to PostgreSQL, create or migrate the schema `landlane`, and turn its errors into our own.

An error never shows the password, and a schema of another version is refused.
"""

from __future__ import annotations

from typing import cast

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from landlane.errors import LandlaneError, StoreCorrupt, StoreError, StoreTransient
from landlane.ids import new_uuid
from landlane.redact import cut_url_secrets, is_clear_url, show_url
from landlane.store.schema_version import check_version, is_current, scripts_after, version_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import psycopg


# 25P03: the client was idle in its transaction for too long, so the server rolled it back.
_PORT = "5432"
_RETRIABLE = ("40001", "40P01", "57P01", "57P02", "57P03", "25P03", "08")
_MESSAGES: dict[str, tuple[str, str, str]] = {
    "25006": ("STORE_READONLY", "is read-only", "use the URL of the primary server"),
    "28": ("STORE_FORBIDDEN", "refused this user or password", "check the user and password in the URL"),
    "3D000": ("STORE_UNOPENABLE", "does not exist", "create the database first: createdb NAME"),
    "42501": (
        "STORE_FORBIDDEN",
        "refused this user",
        "grant it the right to create and use the schema landlane",
    ),
    "53100": (
        "STORE_FULL",
        "cannot be written: its disk is full",
        "nothing was changed; free some space there",
    ),
    "53300": (
        "STORE_CROWDED",
        "has no connection left",
        "raise max_connections, or use a pooler in session mode",
    ),
}


def is_retriable(error: psycopg.Error) -> bool:
    """Return whether running the same transaction again may help."""
    state = error.sqlstate or ""
    return state.startswith(_RETRIABLE) or (not state and error.__class__.__name__ == "OperationalError")


def translate(error: psycopg.Error, url: str) -> LandlaneError:
    """Return the error of Landlane for one of PostgreSQL."""
    state = error.sqlstate or _guess_state(error)
    place = show_url(url)
    if state == "55P03":
        busy = StoreTransient(
            "the store is locked by another program",
            code="STORE_BUSY",
            hint="see who holds it, in psql: SELECT pid, application_name, query FROM pg_stat_activity",
            place=place,
        )
        busy.exit_code = 5
        return busy
    for start in (state, state[:2]):
        if start in _MESSAGES:
            code, message, hint = _MESSAGES[start]
            return StoreError(f"the store {place} {message}", code=code, hint=hint)
    said = cut_url_secrets(str(error).replace(url, place), url).strip()
    message = said.splitlines()[0][:200] if said else "no answer"
    if not state or state.startswith(("08", "57P")):
        return _unreachable(url, place, message)
    return StoreError(
        f"the store {place} failed: {message} ({state})", code="STORE_FAILED", hint="landlane doctor"
    )


def _unreachable(url: str, place: str, message: str) -> StoreTransient:
    """Return the error for a server that does not answer, with a command that asks whether it runs."""
    try:
        given = conninfo_to_dict(url) if is_clear_url(url) else None
    except psycopg.Error:
        given = None
    if given is None:  # the URL itself cannot be read
        return StoreTransient(
            f"{place} is not a valid PostgreSQL URL",  # the driver's message repeats parts of it
            code="STORE_UNREACHABLE",
            hint="write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE,"
            " with %25 for a % and %2F for a / in the password",
        )
    host, port = str(given.get("host") or ""), str(given.get("port") or _PORT)
    server = f"{host}:{port}" if host and not host.startswith("/") else f"port {port} of this machine"
    why = message.rpartition(": ")[2].strip()
    ask = ["pg_isready", *(["-h", host] if host else []), *(["-p", port] if port != _PORT else [])]
    return StoreTransient(
        f"cannot reach PostgreSQL at {server}: {why[:1].lower()}{why[1:]}",
        code="STORE_UNREACHABLE",
        hint=f"is it running? {' '.join(ask)}",
        place=place,
    )


def _guess_state(error: psycopg.Error) -> str:
    """Return the SQLSTATE of a failed connection, for which the driver only has the server's message."""
    words = str(error)
    if 'database "' in words and '" does not exist' in words:
        return "3D000"
    return "28P01" if "authentication failed" in words else ""


_PREPARING = 0x4C4E444C  # the advisory lock ("LNDL") for creating and migrating, the same in every version
# Every statement finds its rows by an index. By default the server would plan larger statements for each
# call, which takes longer than running them, or keep a plan from a time when tables were small.
_SESSION_SETTINGS = (
    "SET search_path TO landlane; SET plan_cache_mode TO force_generic_plan; SET enable_seqscan TO off; "
    # A client that hangs inside its transaction keeps its locks until this timeout; keepalives detect a
    # client whose network is gone.
    "SET lock_timeout TO {wait_ms}; SET idle_in_transaction_session_timeout TO 60000; "
    "SET tcp_keepalives_idle TO 10; SET tcp_keepalives_interval TO 5; SET tcp_keepalives_count TO 3; "
    "SET tcp_user_timeout TO 20000"
)
# The same for this side: without it, a call into a dead network would wait for a quarter of an hour.
# Parameters in the URL take precedence.
_KEEPALIVES = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20000,
}
_WAY_OUT = "start with an empty store, in psql: ALTER SCHEMA landlane RENAME TO landlane_older"


def connect(url: str, wait_ms: int) -> psycopg.Connection[Any]:
    """Return a connection with our search path, time limits and query planning.

    Raises:
        StoreError: the server cannot be reached.
    """
    try:
        given = conninfo_to_dict(url)
        keepalives: dict[str, Any] = {name: item for name, item in _KEEPALIVES.items() if name not in given}
        connection = psycopg.connect(
            url,
            autocommit=True,
            prepare_threshold=1,
            row_factory=cast("Any", dict_row),
            connect_timeout=max(2, wait_ms // 3000),
            **keepalives,
        )
        connection.execute(cast("Any", _SESSION_SETTINGS.format(wait_ms=int(wait_ms))))
    except psycopg.Error as error:
        raise translate(error, url) from error
    return connection


def prepare_schema(connection: psycopg.Connection[Any], url: str, *, may_create: bool = True) -> None:
    """Create or migrate our tables.

    Raises:
        StoreCorrupt: the schema belongs to another program, or is gone although it may not be created.
        StoreError: they were written by a newer or an older Landlane.
    """
    try:
        facts = _checked_facts(connection, url)
        if not facts and not may_create:
            raise StoreCorrupt(
                f"the database {show_url(url)} has no state of Landlane any more",
                code="STORE_LOST",
                hint="restore it from the backup of the database",
            )
        if not is_current(facts):
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
    check_version(facts, show_url(url), lambda: _WAY_OUT)
    return facts


def _not_a_store(url: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"the schema landlane in {show_url(url)} belongs to another program",
        code="NOT_A_STORE",
        hint="it was not changed; set LANDLANE_STORE to the URL of another database",
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
