"""Thirty-two processes at work while they, and the database, are killed: nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.app.open import open_repository
from landlane.app.plain_files import journal_path, read_journal
from landlane.app.verify_journal import verify_journal
from landlane.store.journal_chain import JournalEntry, check_chain
from landlane.testing.postgres_server import PostgresServer
from tests.support.git import commit_text
from tests.support.postgres import start_postgres
from tests.support.store_stress import (
    ProcessGroup,
    Replay,
    all_entries,
    find_violations,
    run_follower,
    run_reader,
    run_verifier,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.repository import Repository

PROCESSES = 32
# A few names that several processes share, and many that are left alone until they lapse.
NAMES = ("ann", "bob", "cy", "dot") * 6 + tuple(f"agent-{number}" for number in range(40))
SECONDS = float(os.environ.get("LANDLANE_FAULT_SECONDS", "5"))
STEPS = 5 + int(SECONDS)  # of each process, where they are to come to an end by themselves
SEED = int(os.environ.get("LANDLANE_FAULT_SEED", "0")) or random.SystemRandom().randrange(2**32)
LONGEST_READ_SECONDS = 5.0
LONGEST_CALL_SECONDS = 20.0
WHILE_THE_SERVER_IS_AWAY = {"STORE_UNREACHABLE", "STORE_AMBIGUOUS"}

# Sessions that end while others use them, so that the traffic meets every kind of end.
SETTINGS = '[sessions]\nlease = "2s"\n'

# On a disk, where users have their stores.
pytestmark = [
    pytest.mark.simulation,
    pytest.mark.slow,
    pytest.mark.on_disk,
    pytest.mark.timeout(SECONDS * 3 + 100),
]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with start_postgres() as running:
        yield running


@pytest.fixture
def busy_repository(repository: Path) -> Path:
    commit_text(repository, "landlane.toml", SETTINGS)
    open_repository(str(repository)).close()
    return repository


def stir(swarm: ProcessGroup, dice: random.Random, seconds: float) -> None:
    """Kill somebody every now and then, and start somebody else."""
    until = time.monotonic() + seconds
    while len(swarm.agents) < PROCESSES:
        swarm.start(names=NAMES)
    while time.monotonic() < until:
        swarm.listen(dice.uniform(0.02, 0.25))
        swarm.kill(dice.choice(swarm.agents))
        swarm.start(names=NAMES)


def examine(repo: Repository, swarm: ProcessGroup) -> Replay:
    """What must hold after any traffic on any store; gives the replay for more questions."""
    entries = all_entries(repo.store)
    replay = Replay().walk(entries)
    assert find_violations(replay, swarm.reports) == []
    assert [report for report in swarm.reports if report["what"] == "broke"] == []
    assert [report for report in swarm.reports if report.get("code") == "AGENT_IN_USE"] == []
    assert [entry for entry in entries if entry.kind == "store.restored"] == []
    stored = repo.store.view(lambda snapshot: snapshot.all("claims_all"))
    assert {row["token"] for row in stored} == set(replay.standing)
    assert verify_journal(repo).trouble == ()
    repo.settle(wait_seconds=10)  # verifying has ended what lapsed meanwhile
    assert list(read_journal(journal_path(repo))) == all_entries(repo.store)
    return replay


def assert_readers_never_waited(swarm: ProcessGroup) -> None:
    reads = [report for report in swarm.reports if report["what"] == "read"]
    assert len(reads) > SECONDS
    assert [report for report in reads if report["failure"]] == []
    assert max(report["ended"] - report["began"] for report in reads) / 1e9 < LONGEST_READ_SECONDS


def assert_calls_came_back(swarm: ProcessGroup) -> None:
    calls = [report for report in swarm.reports if "did" in report]
    assert [call for call in calls if call["ended"] - call["began"] > LONGEST_CALL_SECONDS * 1e9] == []


def tell(swarm: ProcessGroup, replay: Replay, repo: Repository) -> None:
    """What the run was like, for whoever reads the test's output."""
    counts = Counter(report["what"] for report in swarm.reports)
    calls = [report for report in swarm.reports if "did" in report]
    longest = max(calls, key=lambda report: report["ended"] - report["began"])
    reads = [report["ended"] - report["began"] for report in swarm.reports if report["what"] == "read"]
    print(f"seed {SEED}: {swarm.kills} kills, {dict(counts)}, {len(replay.taken)} grants in the journal")
    print("declined:", dict(Counter(r["code"] for r in calls if r["what"] in ("declined", "failed"))))
    took = (longest["ended"] - longest["began"]) / 1e6
    print(f"longest call: {took:.0f} ms {longest['what']} {longest['did']}")
    print(f"longest read: {max(reads, default=0) / 1e6:.0f} ms of {len(reads)}")
    print("ends:", dict(Counter(entry.kind for entry in all_entries(repo.store))))


def test_killed_processes_take_nothing_acknowledged_with_them_on_sqlite(busy_repository: Path) -> None:
    print(f"seed {SEED}")
    with ProcessGroup(busy_repository, seed=SEED, environment=os.environ) as swarm:
        swarm.start(run_reader)
        swarm.start(run_verifier)
        stir(swarm, random.Random(SEED), SECONDS)
    repo = open_repository(str(busy_repository))
    replay = examine(repo, swarm)
    tell(swarm, replay, repo)
    tokens = list(replay.taken)
    assert tokens == sorted(set(tokens))
    assert [report for report in swarm.reports if report["what"] == "failed"] == []
    assert_readers_never_waited(swarm)
    assert_calls_came_back(swarm)
    assert {tuple(report["trouble"]) for report in swarm.reports if report["what"] == "verified"} == {()}
    repo.close()
    with sqlite3.connect(busy_repository / ".git/landlane/store.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


@pytest.mark.postgres
def test_a_crash_of_the_server_and_killed_processes_lose_nothing_acknowledged_on_postgres(
    repository: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {SEED}")
    monkeypatch.setenv("LANDLANE_STORE", server.create_database())
    commit_text(repository, "landlane.toml", SETTINGS)
    open_repository(str(repository)).close()
    with ProcessGroup(repository, seed=SEED, environment=os.environ) as swarm:
        reader = swarm.start(run_reader)
        stir(swarm, random.Random(SEED), SECONDS / 2)
        swarm.kill(reader)  # without a server nobody can read
        crashed_at = time.monotonic_ns()
        server.crash()
        swarm.listen(0.5)
        server.restart()
        back_at = time.monotonic_ns()
        reader = swarm.start(run_reader)
        swarm.listen(1.0)
        stir(swarm, random.Random(SEED + 1), SECONDS / 2)
    repo = open_repository(str(repository))
    replay = examine(repo, swarm)
    tell(swarm, replay, repo)
    failed = [report for report in swarm.reports if report["what"] == "failed"]
    print("failed:", Counter((report["code"], report["did"], report["message"][:100]) for report in failed))
    assert {report["code"] for report in failed} <= WHILE_THE_SERVER_IS_AWAY
    assert [r for r in failed if not crashed_at - 5e9 < r["ended"] < back_at + 5e9] == []
    assert_readers_never_waited(swarm)
    assert_calls_came_back(swarm)
    repo.close()


@pytest.mark.postgres
def test_a_follower_sees_every_acknowledged_entry_once_and_in_order_on_postgres(
    repository: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {SEED}")
    monkeypatch.setenv("LANDLANE_STORE", server.create_database())
    repo = open_repository(str(repository))
    with ProcessGroup(repository, seed=SEED, environment=os.environ) as swarm:
        follower = swarm.start(run_follower)
        for number in range(PROCESSES):
            swarm.start(names=(f"agent-{number}",), steps=STEPS, waits=False)
        until = time.monotonic() + 60
        while any(agent.is_alive() for agent in swarm.agents) and time.monotonic() < until:
            swarm.listen(0.1)
        assert not any(agent.is_alive() for agent in swarm.agents)
        newest = all_entries(repo.store)[-1].position
        while last_seen(swarm) < newest and time.monotonic() < until:
            swarm.listen(0.1)
        swarm.kill(follower)
    seen = [entry_of(report) for report in swarm.reports if report["what"] == "entry"]
    print(f"{len(seen)} entries")
    assert seen == all_entries(repo.store)
    assert [entry.position for entry in seen] == list(range(1, newest + 1))
    assert check_chain(seen).trouble == ()
    assert [report for report in swarm.reports if report["what"] in ("failed", "broke")] == []
    assert find_violations(Replay().walk(seen), swarm.reports) == []
    assert verify_journal(repo).trouble == ()
    repo.close()


def last_seen(swarm: ProcessGroup) -> int:
    return max((report["position"] for report in swarm.reports if report["what"] == "entry"), default=0)


def entry_of(report: dict[str, Any]) -> JournalEntry:
    return JournalEntry(**{name: text for name, text in report.items() if name != "what"})
