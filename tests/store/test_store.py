"""Opening, refusing and sharing a store: newer, foreign, damaged, lost, locked, forked and threaded."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from landlane.errors import StoreCorrupt, StoreError, StoreTransient
from landlane.journal import verify
from landlane.patterns.pattern import areas_of
from landlane.sessions import join as sessions
from landlane.settings.model import Settings, StoreSettings
from landlane.store import schema_version
from landlane.store.file_lock import FairLock
from landlane.store.schema_version import READABLE_BY, SCHEMA_VERSION
from landlane.store.sqlite.database import APPLICATION_ID
from landlane.testing.repositories import open_test_repository
from landlane.version import upgrade_command
from tests.store.databases import facts_of, refusal, run_sql
from tests.support.project import POSTGRES_ONLY, SQLITE_ONLY, Agent, Background, opened
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.store.interface import Transaction
    from tests.support.project import Project

pytestmark = pytest.mark.contract


def fingerprint(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


# --------------------------------------------------------------------------------------------- schema


def test_the_schemas_version_is_recorded(project: Project) -> None:
    project.repo()

    facts = facts_of(project)

    assert (facts["schema"], facts["readable_by"]) == (str(SCHEMA_VERSION), str(READABLE_BY))
    assert len(facts["store_id"]) == 36
    if not project.is_postgres:
        database = sqlite3.connect(project.place)
        assert database.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert database.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        database.close()


@pytest.mark.promise(
    "store.newer-is-refused",
    "A store written by a newer program is refused with an explanation and left unchanged.",
)
@pytest.mark.own_database
def test_a_store_of_a_newer_program_is_refused_politely_and_left_as_it_is(project: Project) -> None:
    project.agent("ann").take("src")
    project.close()
    run_sql(
        project,
        "UPDATE meta SET value = '9007' WHERE key = 'schema'",
        "UPDATE meta SET value = '9006' WHERE key = 'readable_by'",
    )
    before = "" if project.is_postgres else fingerprint(project.place)

    error = refusal(project)

    assert (error.code, error.exit_code) == ("STORE_NEWER", 1)
    assert error.hint == upgrade_command()
    assert "9007" in error.message
    if not project.is_postgres:
        assert fingerprint(project.place) == before
    run_sql(
        project,
        f"UPDATE meta SET value = '{SCHEMA_VERSION}' WHERE key = 'schema'",
        f"UPDATE meta SET value = '{READABLE_BY}' WHERE key = 'readable_by'",
    )
    assert [claim.pattern for claim in project.claims()] == ["src"]


@pytest.mark.own_database
def test_a_store_of_a_newer_program_that_older_ones_may_use_is_used(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_version, "STABLE_SINCE", SCHEMA_VERSION)  # as from 0.2.0 on
    project.agent("ann").take("src")
    project.close()
    run_sql(project, "UPDATE meta SET value = '9007' WHERE key = 'schema'")

    for _ in range(2):
        assert project.agent("bob").expect_refusal("src").holder == "ann"
    assert facts_of(project)["schema"] == "9007"


@pytest.mark.promise("store.made-once", "A store is created once, however many processes open it first.")
@pytest.mark.own_database
def test_a_store_is_made_once_however_many_open_it_first(live_project: Project) -> None:
    openers = [Background(live_project.repo) for _ in range(8)]
    for opener in openers:
        opener.result()

    assert live_project.kinds() == ["repository.begun"]
    assert len({row["value"] for row in live_project.rows("meta_all") if row["key"] == "store_id"}) == 1


# ------------------------------------------------------------------------------------- what is no store


@pytest.mark.promise(
    "store.foreign-is-left-alone",
    "A database of another program is refused and left unchanged.",
)
@SQLITE_ONLY
def test_a_database_of_another_program_is_left_alone(project: Project) -> None:
    run_sql(project, "CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (1)")
    before = fingerprint(project.place)

    error = refusal(project)

    assert (type(error), error.code, error.exit_code) == (StoreCorrupt, "NOT_A_STORE", 1)
    assert fingerprint(project.place) == before


@pytest.mark.promise(
    "store.damage-is-named",
    "A damaged store file is reported as damaged and left unchanged.",
)
@SQLITE_ONLY
@pytest.mark.parametrize(
    "content",
    [b"this is not a database, however long one looks at it\n" * 100, b"SQLite format 3\0" + b"\xff" * 4096],
    ids=["text", "header"],
)
def test_a_file_of_rubbish_is_called_damaged_and_left_alone(project: Project, content: bytes) -> None:
    Path(project.place).write_bytes(content)

    error = refusal(project)

    assert (type(error), error.code) == (StoreCorrupt, "STORE_CORRUPT")
    assert Path(project.place).read_bytes() == content


@SQLITE_ONLY
@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9])
def test_a_truncated_file_is_called_damaged_at_the_latest_when_it_is_used(
    project: Project, part: float
) -> None:
    ann = project.agent("ann")
    for number in range(200):
        ann.take(f"src/{number}")
    project.close()
    size = os.path.getsize(project.place)
    os.truncate(project.place, int(size * part))

    def use() -> None:
        again = project.agent("ann")
        again.take("docs")
        again.release()
        verify.verify(again.repo, [])

    with pytest.raises(StoreCorrupt) as caught:
        use()

    assert caught.value.code == "STORE_CORRUPT"


@pytest.mark.promise(
    "store.loss-is-noticed",
    "A store that is lost while its journal still exists is not created again.",
)
@SQLITE_ONLY
@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "emptied"])
def test_a_store_that_is_lost_while_its_journal_is_there_is_not_begun_anew(
    project: Project, is_removed: bool
) -> None:
    with opened(project) as repo:
        sessions.join(repo, "ann")
    for left in ("", "-wal", "-shm"):
        Path(project.place + left).unlink(missing_ok=True)
    if not is_removed:
        Path(project.place).touch()

    error = refusal(project)

    assert (type(error), error.code) == (StoreCorrupt, "STORE_LOST")
    assert "doctor --fix" in error.hint


@SQLITE_ONLY
def test_a_store_that_never_was_may_be_an_empty_file(project: Project) -> None:
    Path(project.place).touch()

    project.agent("ann").take("src")


@SQLITE_ONLY
def test_a_folder_that_is_not_there_is_named(project: Project) -> None:
    with pytest.raises(StoreError) as caught:
        open_test_repository(project.repository, str(project.repository / "no" / "such" / "store.db"))

    assert caught.value.code == "STORE_UNOPENABLE"


@SQLITE_ONLY
def test_a_kind_of_store_that_nobody_knows_is_refused(project: Project) -> None:
    with pytest.raises(StoreError) as caught:
        open_test_repository(project.repository, "mysql://root@localhost/agents")

    assert caught.value.code == "STORE_UNKNOWN_KIND"


@POSTGRES_ONLY
def test_a_server_that_cannot_be_reached_is_named_without_its_password(project: Project) -> None:
    with pytest.raises(StoreTransient) as caught:
        open_test_repository(
            project.repository,
            "postgresql://ann:hunter2@/agents?host=/no/such/folder&password=hunter3",
            settings=Settings(store=StoreSettings(wait_ms=100)),
        )

    assert caught.value.code == "STORE_UNREACHABLE"
    assert "hunter" not in caught.value.message + caught.value.hint


@POSTGRES_ONLY
def test_a_database_that_does_not_exist_is_named(project: Project) -> None:
    server, _, query = project.place.partition("?")
    with pytest.raises(StoreError) as caught:
        open_test_repository(project.repository, f"{server.rpartition('/')[0]}/no_such_database?{query}")

    assert caught.value.code == "STORE_UNOPENABLE"


@POSTGRES_ONLY
def test_a_broken_connection_is_made_anew(live_project: Project) -> None:
    ann = live_project.agent("ann")
    first = ann.take("src")

    with psycopg.connect(live_project.place, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    assert ann.take("docs").token > first.token
    assert ann.holds() == ["src", "docs"]


# ----------------------------------------------------------------------------------------------- locked


@contextmanager
def locked_by_another_program(project: Project) -> Iterator[None]:
    """Somebody holds the database for the length of a `with` block."""
    if project.is_postgres:
        with psycopg.connect(project.place, options="-c search_path=landlane") as server:
            server.execute("LOCK TABLE claims, sessions, journal IN ACCESS EXCLUSIVE MODE")
            yield
    else:
        database = sqlite3.connect(project.place, isolation_level=None)
        database.execute("BEGIN EXCLUSIVE")
        yield
        database.close()


@pytest.mark.promise(
    "store.busy-has-an-end",
    "Waiting for a locked store ends after the time in the settings.",
)
@pytest.mark.own_database
def test_a_store_that_stays_locked_is_given_up_after_the_wait_of_the_settings(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(store=StoreSettings(wait_ms=300)))

    with locked_by_another_program(project):
        before = time.monotonic()
        with pytest.raises(StoreTransient) as caught:
            ann.claim("src")

    assert (caught.value.code, caught.value.exit_code) == ("STORE_BUSY", 5)
    assert 0.25 < time.monotonic() - before < 10
    ann.take("src")


@pytest.mark.own_database
def test_a_store_that_is_locked_for_a_moment_is_waited_for(project: Project) -> None:
    ann = project.agent("ann")

    with locked_by_another_program(project):
        taking = Background(lambda: ann.take("src"))
        taking.join(0.2)
        assert taking.is_running

    assert taking.result().pattern == "src"


def test_a_reader_does_not_wait_for_a_writer(live_project: Project) -> None:
    ann = live_project.agent("ann")
    ann.take("src")
    is_writing, may_end = threading.Event(), threading.Event()

    def write(tx: Transaction) -> None:
        tx.record("test.slow", "ann", ann.session.id, {})
        is_writing.set()
        assert may_end.wait(30)

    writer = Background(lambda: live_project.repo().store.change(write))
    assert is_writing.wait(30)

    assert ann.holds() == ["src"]
    assert "test.slow" not in live_project.kinds()

    may_end.set()
    writer.result()
    assert live_project.kinds()[-1] == "test.slow"


@POSTGRES_ONLY
def test_work_that_cannot_meet_does_not_wait_for_each_other(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    is_judging, may_end = threading.Event(), threading.Event()

    def judge(_: Transaction) -> None:
        is_judging.set()
        assert may_end.wait(30)

    areas = areas_of((ann.pattern("src/api"),))
    judging = Background(lambda: live_project.repo().store.change(judge, areas=areas))
    assert is_judging.wait(30)

    bob.take("src/web/*.py", "docs")
    meeting = Background(lambda: ann.take("src/api/users.py"))
    wait_until(lambda: waiting_for_locks(live_project) == 1)

    may_end.set()
    judging.result()
    assert meeting.result().pattern == "src/api/users.py"


def waiting_for_locks(project: Project) -> int:
    with psycopg.connect(project.place) as connection:
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        (count,) = connection.execute(query).fetchone() or (0,)
    return count


# ------------------------------------------------------------------------------------ forks and threads

FORKING_PROCESS = """
import os, sys
from pathlib import Path
from landlane.claims import take as claims
from landlane.sessions import join as sessions
from landlane.testing.repositories import open_test_repository
repo = open_test_repository(Path(sys.argv[1]), sys.argv[2])
session = sessions.join(repo, "ann").session

def take(name):
    pattern = repo.git.pattern_of(name, "literal")
    claims.take(repo, session, claims.make_request(repo, (pattern,)))

take("before")
child = os.fork()
for number in range(30):
    take(f"{'parent' if child else 'child'}/{number}")
if not child:
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.promise("store.forks", "A forked child and its parent can both use the store.")
def test_a_forked_child_and_its_parent_may_both_use_the_store(live_project: Project) -> None:
    command = [sys.executable, "-c", FORKING_PROCESS, str(live_project.repository), live_project.place]

    subprocess.run(command, check=True, timeout=60)

    expected = {"before", *(f"{who}/{number}" for who in ("parent", "child") for number in range(30))}
    assert {claim.pattern for claim in live_project.claims()} == expected
    assert verify.verify(live_project.repo(), []).trouble == ()


FORKING_WHILE_LOCKED = """
import os, sys, threading
from landlane.store.file_lock import FairLock
first, second = FairLock(sys.argv[1]), FairLock(sys.argv[1])
assert first.try_acquire()
open_files = len(os.listdir("/proc/self/fd"))
waiting = threading.Thread(target=second.acquire, args=(30,))
waiting.start()
while len(os.listdir("/proc/self/fd")) == open_files:  # it waits in line with a file of its own
    pass
first.release()
waiting.join()
read_end, write_end = os.pipe()
if not os.fork():
    os.close(write_end)
    os.read(read_end, 1)
    os._exit(0)
second.release()
print(first.try_acquire(), flush=True)
"""


@pytest.mark.promise(
    "store.forks-keep-no-lock",
    "A child forked during a transaction does not keep the lock.",
)
@SQLITE_ONLY
def test_a_child_forked_in_the_middle_of_a_change_does_not_keep_the_lock(project: Project) -> None:
    command = [sys.executable, "-c", FORKING_WHILE_LOCKED, project.place + ".lock"]

    answer = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)

    assert answer.stdout == "True\n"


@SQLITE_ONLY
def test_a_wait_for_the_lock_that_was_given_up_takes_it_from_nobody(project: Project) -> None:
    holder, waiter = FairLock(project.place + ".lock"), FairLock(project.place + ".lock")
    assert holder.try_acquire()
    assert not waiter.acquire(0.05)
    holder.release()

    assert waiter.acquire(10)

    waiter.close()
    holder.close()


@pytest.mark.promise("store.threads", "Threads can share one store.")
def test_threads_may_share_one_store(live_project: Project) -> None:
    repo = live_project.repo()
    agents = [Agent(repo, sessions.join(repo, f"a{number}")) for number in range(8)]
    together = threading.Barrier(len(agents))

    def work(agent: Agent) -> list[int]:
        together.wait(30)
        return [agent.take(f"{agent.name}/{number}").token for number in range(15)]

    workers = [Background(lambda agent=agent: work(agent)) for agent in agents]
    tokens = [token for worker in workers for token in worker.result(60)]

    assert len(set(tokens)) == 8 * 15
    assert sorted(tokens) == [claim.token for claim in live_project.claims()]
    assert verify.verify(repo, []).trouble == ()


@pytest.mark.promise("store.closes-everything", "Closing the store closes every file.")
def test_closing_lets_go_of_every_file(live_project: Project) -> None:
    def use() -> None:
        with opened(live_project) as repo:
            agent = Agent(repo, sessions.join(repo, "ann"))
            agent.take("src")
            agent.claim("docs", wait_ms=1000)

    use()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        use()

    assert len(os.listdir("/proc/self/fd")) <= before
