"""Waiting on a PostgreSQL server that goes away for a moment, and lines that fall silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from landlane import Landlane
from landlane.api import Taken
from landlane.ids import new_uuid
from landlane.store.postgres.database import connect
from landlane.store.postgres.store import PostgresStore
from landlane.testing.postgres_server import PostgresServer
from tests.support.postgres import start_postgres
from tests.support.project import Background
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from landlane.store.interface import Transaction

pytestmark = [pytest.mark.integration, pytest.mark.postgres]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with start_postgres() as running:
        yield running


def _count_waiters(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM landlane.waiters").fetchone()
    assert row is not None
    return int(row[0])


def test_a_wait_outlasts_a_restart_of_the_server(
    server: PostgresServer, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.create_database()
    monkeypatch.setenv("LANDLANE_STORE", url)
    ann, bob = Landlane(repository, agent="ann"), Landlane(repository, agent="bob")
    assert isinstance(ann.claim("a.py"), Taken)
    waiting = Background(lambda: bob.claim("a.py", wait="60s"))
    wait_until(lambda: _count_waiters(url) == 1)

    server.crash()
    server.restart()
    assert waiting.is_running
    ann.release("a.py")

    assert isinstance(waiting.result(60), Taken)
    assert [one.agent for one in ann.claims()] == ["bob"]
    ann.close()
    bob.close()


def test_a_line_that_swallows_everything_is_found_out(server: PostgresServer) -> None:
    """Ours and the server's side both ask whether the other is there; what the URL says goes before."""
    url = server.create_database()
    with connect(url + "&keepalives_idle=77" if "?" in url else url + "?keepalives_idle=77", 1000) as line:
        said = line.info.get_parameters()
        assert (said["keepalives_idle"], said["keepalives_count"]) == ("77", "3")
        assert said["tcp_user_timeout"] == "20000"
        rows = line.execute("SELECT name, setting FROM pg_settings WHERE name LIKE 'idle_in_transaction%'")
        assert rows.fetchall() == [{"name": "idle_in_transaction_session_timeout", "setting": "60000"}]


def test_a_server_that_gives_up_a_connection_while_it_is_made_is_asked_again(
    server: PostgresServer, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDLANE_STORE", server.create_database())
    tries: list[str] = []

    def flaky(url: str, wait_ms: int) -> object:
        tries.append(url)
        connection = connect(url, wait_ms)
        if len(tries) == 1:
            connection.close()  # it is lost before its first question
        return connection

    monkeypatch.setattr("landlane.store.postgres.store.connect", flaky)
    with Landlane(repository, agent="ann") as ann:
        assert ann.claims() == []
    assert len(tries) == 2


def test_who_moves_a_store_may_stand_idle_in_its_transaction(server: PostgresServer) -> None:
    store = PostgresStore(server.create_database(), new_uuid())

    def look(tx: Transaction) -> object:
        store.stop_writers(tx)
        return timeout()

    def timeout() -> object:
        row = store._reach().execute("SHOW idle_in_transaction_session_timeout").fetchone()  # pyright: ignore[reportPrivateUsage]
        return row and row["idle_in_transaction_session_timeout"]

    assert store.change(look, areas={"": True, "//seal": True}) == "0"
    assert timeout() == "1min"
    store.close()
