"""The statements in `queries.sql` files: each name is unique, is used, and exists for both databases."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import psycopg
import pytest

from landlane.store.postgres.store import PostgresStore
from landlane.store.sqlite.store import SqliteStore
from landlane.store.statements import for_psycopg, read_statements, split_statements, spread

pytestmark = pytest.mark.architecture

PACKAGE = Path(__file__).parents[2] / "src" / "landlane"
FILES = sorted(PACKAGE.rglob("queries*.sql"))
DATABASES = ("sqlite", "postgres")


def statements_in(path: Path) -> dict[str, str]:
    return split_statements(path.read_text(encoding="utf-8"))


def all_statements() -> set[str]:
    return {name for path in FILES for name in statements_in(path)}


@cache
def modules() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(PACKAGE.rglob("*.py"))]


def named_in(module: ast.Module) -> set[str]:
    """The texts in a module that could be names of statements, also those that an f-string builds."""
    texts = {
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    built: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr) and len(node.values) == 2:
            first = node.values[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                built |= {first.value + text for text in texts}
    return texts | built


def test_every_file_of_statements_is_loaded() -> None:
    assert len(FILES) > 5
    for path in FILES:
        for database in DATABASES:
            if path.name in ("queries.sql", f"queries.{database}.sql"):
                assert statements_in(path).keys() <= read_statements(database).keys(), path


def test_every_heading_has_a_statement() -> None:
    for path in FILES:
        headings = re.findall(r"^-- ([a-z_]+): \S", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == list(statements_in(path)), path


def test_a_name_stands_for_one_statement_only() -> None:
    for kind in ("queries.sql", *(f"queries.{database}.sql" for database in DATABASES)):
        names = Counter(name for path in FILES if path.name == kind for name in statements_in(path))
        assert [name for name, count in names.items() if count > 1] == []


def test_a_statement_for_one_database_stands_beside_the_common_one_that_it_replaces() -> None:
    home = {name: path.parent for path in FILES if path.name == "queries.sql" for name in statements_in(path)}
    for path in FILES:
        assert {home.get(name, path.parent) for name in statements_in(path)} <= {path.parent}, path


@pytest.mark.slow
def test_every_statement_is_used() -> None:
    used = set[str]().union(*(named_in(module) for _, module in modules()))
    used |= {f"{name}_all" for name in used}  # `near` of the PostgreSQL store

    assert sorted(all_statements() - used) == []


@pytest.mark.slow
def test_the_code_names_no_statement_that_a_database_lacks() -> None:
    known = {database: read_statements(database).keys() for database in DATABASES}
    calls = 0
    for path, module in modules():
        needs = [database for database in DATABASES if database in path.parts] or DATABASES
        for node in ast.walk(module):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            receiver, name = ast.unparse(node.func.value).rpartition(".")[2], node.args[0]
            is_ours = node.func.attr in ("one", "all", "run", "near") and receiver in (
                "tx",
                "_tx",
                "snapshot",
            )
            if is_ours and isinstance(name, ast.Constant):
                calls += 1
                for database in needs:
                    assert name.value in known[database], f"{path}:{node.lineno}: {name.value} ({database})"
    assert calls > 200


class PlaceholderValues(dict[str, object]):
    """A value for each parameter that a statement may have."""

    def __missing__(self, name: str) -> object:
        return 1


def columns_in_sqlite(path: Path) -> dict[str, list[str]]:
    """The columns that each statement returns, from running all of them."""
    store = SqliteStore(str(path), "repository")
    columns: dict[str, list[str]] = {}
    for name, statement in store.statements.items():
        text, _ = spread(statement, {word: [1] for word in re.findall(r":\*(\w+)", statement)})
        store.db.execute("BEGIN")
        columns[name] = [
            column[0] for column in store.db.execute(text, PlaceholderValues()).description or ()
        ]
        store.db.execute("ROLLBACK")
    store.close()
    return columns


def columns_in_postgres(url: str) -> dict[str, list[str]]:
    """The columns that each statement returns, as the server describes them."""
    PostgresStore(url, "repository").close()
    columns: dict[str, list[str]] = {}
    with psycopg.connect(url, options="-c search_path=landlane") as connection:
        for name, statement in read_statements("postgres").items():
            if not re.search(r"^SELECT|RETURNING", statement):
                continue
            text = re.sub(r"%\(\w+\)s", "NULL", for_psycopg(statement))
            connection.pgconn.prepare(name.encode(), text.replace("%%", "%").encode())
            result = connection.pgconn.describe_prepared(name.encode())
            assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, (name, result.error_message)
            columns[name] = [(result.fname(index) or b"").decode() for index in range(result.nfields)]
    return columns


def test_every_column_of_a_result_has_a_plain_and_distinct_name(tmp_path: Path) -> None:
    columns = columns_in_sqlite(tmp_path / "store.db")

    assert len([name for name, names in columns.items() if names]) > 80
    for name, names in columns.items():
        assert all(re.fullmatch(r"[a-z_]+", column) for column in names), name
        assert len(set(names)) == len(names), name


@pytest.mark.postgres
def test_the_columns_of_a_result_are_the_same_on_both_databases(tmp_path: Path, postgres_url: str) -> None:
    in_sqlite, in_postgres = columns_in_sqlite(tmp_path / "store.db"), columns_in_postgres(postgres_url)

    for name, names in in_postgres.items():
        if name in in_sqlite and name != "opening":
            assert names == in_sqlite[name], name
        assert len(set(names)) == len(names), name
        assert not {"coalesce", "count", "exists", "max", "?column?"} & set(names), name
