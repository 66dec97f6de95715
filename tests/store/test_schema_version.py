"""Stores of another version or program are refused unchanged; creating and migrating is all or nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import landlane
from landlane.errors import StoreCorrupt, StoreError
from landlane.hook_entry import client_fast_path
from landlane.store import schema_version
from landlane.store.sqlite.database import APPLICATION_ID
from landlane.testing.repositories import open_test_repository
from landlane.version import __version__, upgrade_command
from tests.store.databases import facts_of, refusal, run_sql
from tests.support.project import POSTGRES_ONLY, SQLITE_ONLY, Background

if TYPE_CHECKING:
    from tests.support.project import Project

pytestmark = pytest.mark.contract

FIRST_EDITION = 0x494C434B  # the application id of the stores of an unpublished edition


def set_number(project: Project, number: int) -> None:
    """Make the store one of another schema version."""
    meta = "landlane.meta" if project.is_postgres else "meta"
    run_sql(project, f"UPDATE {meta} SET value = '{number}' WHERE key IN ('schema', 'readable_by')")
    if not project.is_postgres:
        run_sql(project, f"PRAGMA user_version={number}")


def content_of(project: Project) -> object:
    """Everything that opening the store could change."""
    if not project.is_postgres:
        folder = Path(project.place).parent
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    with psycopg.connect(project.place) as connection:
        tables = connection.execute(
            "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2, 3"
        ).fetchall()
        names = {(row[0], row[1]) for row in tables}
        rows = {
            name: connection.execute(
                f"SELECT * FROM {name[0]}.{name[1]} t ORDER BY t::text".encode()
            ).fetchall()
            for name in names
        }
    return tables, rows


def schema_of(project: Project) -> object:
    """The tables and indexes of the store."""
    if not project.is_postgres:
        with sqlite3.connect(project.place) as database:
            found = database.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
        database.close()
        return found
    with psycopg.connect(project.place) as connection:
        return connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = 'landlane' ORDER BY 1, ordinal_position"
        ).fetchall()


# ------------------------------------------------------------------------------------------ another number


@pytest.mark.promise(
    "store.other-versions-are-refused",
    "A store of any other schema version is refused with a hint how to continue, and left unchanged.",
)
@pytest.mark.own_database
@pytest.mark.parametrize(
    ("number", "code"),
    [(0, "STORE_OLDER"), (schema_version.SCHEMA_VERSION + 1, "STORE_NEWER"), (99, "STORE_NEWER")],
)
def test_a_store_of_another_number_is_refused_and_left_as_it_is(
    project: Project, number: int, code: str
) -> None:
    project.agent("ann").take("src")
    project.close()
    set_number(project, number)
    before = content_of(project)

    error = refusal(project)
    assert refusal(project).code == code

    assert (type(error), error.code, error.exit_code) == (StoreError, code, 1)
    current = f"this is {__version__} (schema {schema_version.SCHEMA_VERSION})"
    assert error.message.endswith(f" Landlane (schema {number}); {current}")
    assert error.facts["schema"] == number
    assert error.hint
    assert content_of(project) == before
    set_number(project, schema_version.SCHEMA_VERSION)
    assert [claim.pattern for claim in project.claims()] == ["src"]


@pytest.mark.own_database
def test_a_store_is_older_once_the_program_has_a_higher_number(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.agent("ann").take("src")
    project.close()
    before = content_of(project)
    monkeypatch.setattr(schema_version, "SCHEMA_VERSION", schema_version.SCHEMA_VERSION + 1)

    assert refusal(project).code == "STORE_OLDER"
    assert content_of(project) == before


@pytest.mark.own_database
def test_a_newer_store_names_the_release_that_wrote_it(project: Project) -> None:
    project.agent("ann").take("src")
    assert facts_of(project)["written_by"] == __version__
    project.close()
    set_number(project, 99)
    run_sql(project, "UPDATE meta SET value = '2.3' WHERE key = 'written_by'")

    error = refusal(project)

    assert error.message == f"the state was written by Landlane 2.3; this is {__version__}"
    assert error.hint == upgrade_command()


@SQLITE_ONLY
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (f"PRAGMA user_version={schema_version.SCHEMA_VERSION + 1}", "STORE_NEWER"),
        (
            f"UPDATE meta SET value = '{schema_version.SCHEMA_VERSION + 1}' WHERE key = 'schema'",
            "STORE_NEWER",
        ),
        ("UPDATE meta SET value = '0' WHERE key = 'schema'", "STORE_OLDER"),
    ],
)
def test_another_number_in_either_place_is_enough(project: Project, change: str, code: str) -> None:
    project.agent("ann").take("src")
    project.close()
    run_sql(project, change)
    before = content_of(project)

    assert refusal(project).code == code
    assert content_of(project) == before


def move_store(place: str, to: str) -> None:
    """Move a SQLite store with its log, as a rebuild does."""
    for ending in ("", "-wal", "-shm"):
        if os.path.exists(place + ending):
            os.rename(place + ending, to + ending)


@SQLITE_ONLY
def test_a_file_of_another_version_is_refused_to_whoever_has_the_store_open(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src")
    copy = project.place + ".copy"
    with sqlite3.connect(project.place) as database, sqlite3.connect(copy) as target:
        database.backup(target)
    database.close()
    target.execute(f"PRAGMA user_version={schema_version.SCHEMA_VERSION + 1}")
    target.close()
    move_store(project.place, project.place + ".aside")
    os.rename(copy, project.place)

    for _ in range(2):
        with pytest.raises(StoreError, match="newer Landlane"):
            ann.take("docs")
        with pytest.raises(StoreError, match="newer Landlane"):
            project.claims()

    move_store(project.place, project.place + ".newer")
    move_store(project.place + ".aside", project.place)
    ann.take("docs")
    assert {claim.pattern for claim in project.claims()} == {"src", "docs"}


@SQLITE_ONLY
def test_the_log_of_a_killed_program_is_left_as_it_is_too(project: Project) -> None:
    script = (
        "import os, sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        f"database.execute('PRAGMA user_version={schema_version.SCHEMA_VERSION + 1}')\n"
        f"database.execute(\"UPDATE meta SET value = '{schema_version.SCHEMA_VERSION + 1}'\"\n"
        "                 \" WHERE key IN ('schema', 'readable_by')\")\n"
        "os._exit(0)\n"
    )
    project.agent("ann").take("src")
    project.close()
    subprocess.run([sys.executable, "-c", script, project.place], check=True)
    files = [Path(project.place), Path(project.place + "-wal")]
    before = [path.read_bytes() for path in files]
    assert all(before)

    assert refusal(project).code == "STORE_NEWER"

    assert [path.read_bytes() for path in files] == before


@SQLITE_ONLY
@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE meta",
        "DELETE FROM meta WHERE key = 'schema'",
        "UPDATE meta SET value = 'x' WHERE key = 'schema'",
    ],
)
def test_a_store_that_does_not_say_its_number_is_called_damaged(project: Project, change: str) -> None:
    project.agent("ann").take("src")
    project.close()
    run_sql(project, change)
    before = content_of(project)

    error = refusal(project)

    assert (type(error), error.code) == (StoreCorrupt, "STORE_CORRUPT")
    assert content_of(project) == before


# ---------------------------------------------------------------------------- the way out for an older store


@SQLITE_ONLY
def test_the_hint_for_an_older_file_can_be_pasted(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "it's elsewhere"
    folder.mkdir()
    place = str(folder / "state.db")
    open_test_repository(project.repository, place).store.close()
    other = type(project)(project.repository, place)
    set_number(other, 0)

    error = refusal(other)
    command = error.hint.partition(": ")[2]
    subprocess.run(["/bin/sh", "-c", command], check=True, cwd="/")

    other.agent("ann").take("src")
    other.close()
    assert (folder / "older-store" / "state.db").exists()


@POSTGRES_ONLY
@pytest.mark.own_database
def test_the_hint_for_an_older_schema_can_be_pasted(project: Project) -> None:
    project.agent("ann").take("src")
    project.close()
    set_number(project, 0)

    error = refusal(project)
    run_sql(project, error.hint.partition(": ")[2])

    project.agent("bob").take("src")
    with psycopg.connect(project.place) as connection:
        assert connection.execute("SELECT pattern FROM landlane_older.claims").fetchall() == [("src",)]


# ------------------------------------------------------------------------------- databases of other programs


@SQLITE_ONLY
@pytest.mark.parametrize(
    "commands",
    [
        (
            "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
            "INSERT INTO meta VALUES ('schema', '5'), ('readable_by', '1'), ('epoch', '3'), ('base', '0')",
            f"PRAGMA application_id={FIRST_EDITION}",
            "PRAGMA user_version=5",
        ),
        (f"PRAGMA application_id={FIRST_EDITION}",),
        ("PRAGMA user_version=1",),
        ("CREATE TABLE theirs (x)",),
    ],
    ids=["first edition", "application id", "user version", "table"],
)
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_and_nothing_is_put_beside_it(
    project: Project, tmp_path: Path, commands: tuple[str, ...], mode: str
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    other = type(project)(project.repository, str(folder / "other.db"))
    run_sql(other, *commands)
    with sqlite3.connect(other.place) as database:
        database.execute(f"PRAGMA journal_mode={mode}")
    database.close()
    before = content_of(other)

    error = refusal(other)

    assert (type(error), error.code) == (StoreCorrupt, "NOT_A_STORE")
    assert str(other.place) in error.message
    assert content_of(other) == before


@POSTGRES_ONLY
@pytest.mark.own_database
@pytest.mark.parametrize("table", ["theirs (x text)", "meta (x text)", "meta (key text, value text)"])
def test_a_schema_of_another_program_is_refused_and_left_as_it_is(project: Project, table: str) -> None:
    run_sql(
        project,
        "DROP SCHEMA IF EXISTS landlane CASCADE",
        "CREATE SCHEMA landlane",
        f"CREATE TABLE landlane.{table}",
    )
    before = content_of(project)

    error = refusal(project)

    assert (type(error), error.code) == (StoreCorrupt, "NOT_A_STORE")
    assert content_of(project) == before


@POSTGRES_ONLY
@pytest.mark.own_database
def test_an_empty_schema_that_an_administrator_made_is_used(project: Project) -> None:
    run_sql(project, "DROP SCHEMA IF EXISTS landlane CASCADE", "CREATE SCHEMA landlane")

    project.agent("ann").take("src")


# ------------------------------------------------------------------------------------------ creating a store

OPENER = """
import sys
from pathlib import Path
from landlane.testing.repositories import open_test_repository
print("ready", flush=True)
sys.stdin.readline()
store = open_test_repository(Path(sys.argv[1]), sys.argv[2]).store
print(store.view(lambda reading: reading.one("meta_get", key="store_id"))["value"], flush=True)
"""

CRASH = """
import os, sys
from pathlib import Path
from landlane.store.{database} import database
from landlane.testing.repositories import open_test_repository
database.{function} = lambda *_: os._exit(9)
open_test_repository(Path(sys.argv[1]), sys.argv[2])
"""


def start(script: str, project: Project) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", script, str(project.repository), project.place]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def remove_store(project: Project) -> None:
    project.close()
    if project.is_postgres:
        run_sql(project, "DROP SCHEMA IF EXISTS landlane CASCADE")
    else:
        for path in Path(project.place).parent.glob("store.db*"):
            path.unlink()


@pytest.mark.own_database
def test_processes_that_create_the_store_at_the_same_time_get_the_same_one(live_project: Project) -> None:
    remove_store(live_project)
    openers = [start(OPENER, live_project) for _ in range(4)]
    for opener in openers:
        assert opener.stdout
        assert opener.stdout.readline() == "ready\n"
    for opener in openers:
        assert opener.stdin
        opener.stdin.write("go\n")
        opener.stdin.flush()

    store_ids = {opener.communicate(timeout=60)[0].strip() for opener in openers}

    assert [opener.returncode for opener in openers] == [0] * 4
    assert len(store_ids) == 1
    live_project.agent("ann").take("src")


@pytest.mark.promise("store.created-whole", "A crash while a store is created leaves nothing half done.")
@pytest.mark.own_database
@pytest.mark.parametrize("function", ["scripts_after", "version_facts", "new_uuid"])
def test_a_crash_while_the_store_is_created_leaves_nothing_half_done(
    live_project: Project, function: str
) -> None:
    live_project.agent("ann").take("src")
    expected = schema_of(live_project)
    remove_store(live_project)
    database = "postgres" if live_project.is_postgres else "sqlite"

    crashed = start(CRASH.format(database=database, function=function), live_project)
    crashed.communicate(timeout=60)
    assert crashed.returncode == 9
    live_project.agent("bob").take("src")

    assert schema_of(live_project) == expected


# --------------------------------------------------------------------------------------------- migrations


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """A release after 0.2.0 that adds a column, made up here until there is a real one."""
    folder = tmp_path / "scripts"
    shutil.copytree(schema_version.FOLDER, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    now, number = schema_version.SCHEMA_VERSION, schema_version.SCHEMA_VERSION + 1
    for database in ("sqlite", "postgres"):
        script = "ALTER TABLE claims ADD COLUMN colour text NOT NULL DEFAULT 'blue';\n"
        (folder / "migrations" / f"{number:04}_colour.{database}.sql").write_text(script, encoding="utf-8")
    monkeypatch.setattr(schema_version, "FOLDER", str(folder))
    monkeypatch.setattr(schema_version, "STABLE_SINCE", schema_version.STABLE_SINCE or now)
    monkeypatch.setattr(schema_version, "SCHEMA_VERSION", number)
    return number


@pytest.mark.own_database
def test_a_store_of_the_version_before_is_migrated_and_keeps_its_content(
    project: Project, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    project.agent("ann").take("src")
    before = facts_of(project)
    project.close()
    number = request.getfixturevalue("next_version")

    openers = [Background(project.repo) for _ in range(4)]
    for opener in openers:
        opener.result()

    assert project.agent("bob").expect_refusal("src").holder == "ann"
    assert facts_of(project) == {**before, "schema": str(number)}
    migrated = schema_of(project)
    remove_store(project)
    project.agent("ann").take("src")
    assert schema_of(project) == migrated  # a new store has the same tables as a migrated one
    project.close()

    monkeypatch.setattr(schema_version, "SCHEMA_VERSION", number - 1)
    assert project.agent("bob").expect_refusal("src").holder == "ann"  # the version before may still use it


@pytest.mark.own_database
def test_a_migrated_store_that_older_programs_cannot_use_is_refused_by_them(
    project: Project, monkeypatch: pytest.MonkeyPatch, next_version: int
) -> None:
    monkeypatch.setattr(schema_version, "READABLE_BY", next_version)
    project.agent("ann").take("src")
    project.close()
    before = content_of(project)

    monkeypatch.setattr(schema_version, "SCHEMA_VERSION", next_version - 1)

    assert refusal(project).code == "STORE_NEWER"
    assert content_of(project) == before


@pytest.mark.own_database
def test_a_store_from_before_the_first_stable_version_is_refused(project: Project, next_version: int) -> None:
    project.repo()
    project.close()
    set_number(project, (schema_version.STABLE_SINCE or next_version) - 1)

    assert refusal(project).code == "STORE_OLDER"


@pytest.mark.own_database
def test_a_migration_that_fails_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    project.agent("ann").take("src")
    project.close()
    before = schema_of(project)
    number = request.getfixturevalue("next_version")
    for path in Path(schema_version.FOLDER, "migrations").glob("*.sql"):
        with path.open("a", encoding="utf-8") as file:
            file.write("ALTER TABLE no_such_table ADD COLUMN colour text;\n")

    assert refusal(project).code == "STORE_FAILED"

    assert schema_of(project) == before
    monkeypatch.setattr(schema_version, "SCHEMA_VERSION", number - 1)
    assert [claim.pattern for claim in project.claims()] == ["src"]
    assert facts_of(project)["schema"] == str(number - 1)


# --------------------------------------------------------------------------------------------- the rule


def test_the_schema_is_edited_until_0_2_0_and_migrated_from_then_on() -> None:
    release = tuple(int(part) for part in landlane.__version__.split(".")[:2])
    names = os.listdir(Path(schema_version.FOLDER, "migrations"))
    first = schema_version.STABLE_SINCE
    if release < (0, 2):
        assert first is None
        assert schema_version.READABLE_BY == schema_version.SCHEMA_VERSION
        assert [name for name in names if name.endswith(".sql")] == []
    else:
        assert first is not None, "set STABLE_SINCE: see docs/design/0015-schema-versions.md"
        for database in ("sqlite", "postgres"):
            numbers = sorted(int(name[:4]) for name in names if name.endswith(f".{database}.sql"))
            assert numbers == list(range(first + 1, schema_version.SCHEMA_VERSION + 1))


def test_the_fast_path_of_the_hooks_has_the_same_numbers() -> None:
    assert client_fast_path.APPLICATION_ID == APPLICATION_ID == int.from_bytes(b"LNDL", "big")
    assert client_fast_path.SCHEMA_VERSION == schema_version.SCHEMA_VERSION
