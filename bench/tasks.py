"""Tasks: a full life (add, next, done) beside bare transactions and other queues; next among very many."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING

from bench.places import DISK, Claimant, open_sqlite, quickest_place, scratch
from bench.queues import ON_SQLITE, bare_sqlite, procrastinate
from bench.table import Row, Skipped, at_least, at_most
from bench.timing import cpu_of_each, medians
from landlane.ids import new_uuid
from landlane.store.postgres.store import PostgresStore
from landlane.tasks.add import add_task
from landlane.tasks.finish import finish_without_evidence
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.testing.postgres_install import PostgresUnavailable
from landlane.testing.postgres_server import PostgresServer

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from bench.queues import Move
    from bench.sizes import Sizes
    from landlane.store.sqlite.store import SqliteStore

_TASK = """
INSERT INTO tasks (repository, id, title, body, kind, state, role, priority, rank, paths, owner, session,
                   attempt, failures, lapses, max_attempts, lineage, check_command, output, key, labels, why,
                   next_action, head, result, waits_for, created_at, ready_at, taken_at)
VALUES (?, ?, ?, '', 'chore', 'ready', ?, 0, ?, '[]', '', '',
        0, 0, 0, 3, ?, '', '', NULL, '[]', '', '', '', '', 0, ?, ?, 0)
"""


class Worker(Claimant):
    """One session that adds tasks, takes them and ends them."""

    def move(self, number: int) -> None:
        """So many tasks through their full life, each with three durable transactions."""
        for _ in range(number):
            self.add()
            self.finish(self.take())

    def add(self) -> None:
        title = f"Move parcel {next(_numbers)} to the other side"
        add_task(self.repo, self.session, NewTask(title=title, kind="chore"))

    def take(self) -> str:
        picked = next_task(self.repo, self.session)
        assert isinstance(picked, Picked)
        return picked.task.id

    def finish(self, task_id: str) -> None:
        finish_without_evidence(self.repo, self.session, task_id, "")


_numbers = count()


def bench_tasks(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """Tasks in a second on SQLite on disk, against bare transactions, and other queues beside them."""
    size = max(sizes.batch // 2, 1)
    with scratch(DISK) as folder:
        moves: dict[str, Move] = {"ours": Worker(open_sqlite(folder), folder, "ann").move}
        moves["bare"] = bare_sqlite(folder)
        for name, make in ON_SQLITE.items():
            try:
                moves[name] = make(folder)
            except ImportError as error:
                yield _missing(name, error)
        found = medians({name: _rate(move, size) for name, move in moves.items()}, _rounds(sizes), lots)
    what = "tasks/s (add, next, done) on SQLite, disk, against {}"
    bare = what.format("three bare transactions")
    yield Row(what=bare, unit="/s", ours=found["ours"], peer=found["bare"], aim=at_least(0.5))
    for name in (one for one in ON_SQLITE if one in moves):
        yield Row(what=what.format(name), unit="/s", ours=found["ours"], peer=found[name])
    yield from _bench_postgres(sizes, lots, size)


def _bench_postgres(sizes: Sizes, lots: random.Random, size: int) -> Iterator[Row | Skipped]:
    what = "tasks/s (add, next, done) on PostgreSQL, against procrastinate"
    try:
        server = PostgresServer.start()
    except PostgresUnavailable as unavailable:
        yield Skipped(what=what, reason=unavailable.reason)
        return
    with server, scratch(DISK) as folder:
        try:
            moves = {"peer": procrastinate(server.create_database())}
        except ImportError as error:
            yield _missing("procrastinate", error)
            return
        store = PostgresStore(server.create_database(), new_uuid(), folder=folder)
        moves["ours"] = Worker(store, folder, "ann").move
        found = medians(
            {name: _rate(move, size) for name, move in moves.items()}, _rounds(sizes), lots, warm=1
        )
        store.close()
    yield Row(what=what, unit="/s", ours=found["ours"], peer=found["peer"])


def _missing(name: str, error: ImportError) -> Skipped:
    return Skipped(
        what=f"tasks/s against {name}", reason=f"{error.name} is not installed; `make bench` does it"
    )


def _rounds(sizes: Sizes) -> int:
    return max(sizes.rounds // 4, 1)


def _rate(move: Move, size: int) -> Callable[[], float]:
    def measure() -> float:
        began = time.perf_counter()
        move(size)
        return size / (time.perf_counter() - began)

    return measure


def bench_next(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """What `next` costs among ten thousand and a hundred thousand waiting tasks, against among ten."""
    place = quickest_place()
    amounts = (sizes.live_claims // 100, sizes.live_claims // 10)
    with scratch(place) as folder:
        workers = {amount: _among(folder, amount) for amount in (10, *amounts)}
        strangers = _among(folder, amounts[-1], role="other")
        candidates = {str(amount): _takes(worker, sizes.batch) for amount, worker in workers.items()}
        candidates["strangers"] = _takes(strangers, sizes.batch)
        found = medians(candidates, _rounds(sizes), lots)
        for worker in (*workers.values(), strangers):
            worker.store.close()
    for amount in amounts:
        what = f"CPU of next among {amount:,} waiting tasks, {place}, against among 10"
        yield Row(what=what, unit="µs", ours=found[str(amount)], peer=found["10"], aim=at_most(2))
    what = f"CPU of next among {amounts[-1]:,} tasks of another role, {place}, against among 10"
    yield Row(what=what, unit="µs", ours=found["strangers"], peer=found["10"], aim=at_most(2))


def _among(folder: str, amount: int, role: str = "") -> Worker:
    worker = Worker(open_sqlite(folder, name=f"{amount}{role}.db"), folder, "ann")
    assert not isinstance(worker.store, PostgresStore)
    _fill(worker.store, amount, role)
    return worker


def _fill(store: SqliteStore, amount: int, role: str) -> None:
    """So many waiting tasks in one transaction, behind all that the bench adds itself."""
    now = store.now()
    db = store.db
    db.execute("BEGIN IMMEDIATE")
    db.executemany(
        _TASK,
        (
            (store.repository, f"T{n}", f"Waiting {n}", role, now + 10**9 + n, f"T{n}", now, now)
            for n in range(10**6, 10**6 + amount)
        ),
    )
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _takes(worker: Worker, size: int) -> Callable[[], float]:
    """The CPU time of a `next`; what it takes was added before, and is ended after."""

    def measure() -> float:
        for _ in range(size):
            worker.add()
        taken: list[str] = []
        cost = cpu_of_each(lambda _: taken.append(worker.take()), range(size))
        for task_id in taken:
            worker.finish(task_id)
        return cost

    return measure
