"""Measure how long a line of waiters takes to be served, and what an unrelated claim costs meanwhile."""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from bench.places import DISK, Claimant, open_sqlite, scratch
from bench.table import Row, Skipped, at_most
from landlane.claims.describe import list_waiters
from landlane.claims.held import release
from landlane.claims.wait import wait_for_claims
from landlane.ids import new_uuid
from landlane.patterns.pattern import parse
from landlane.store.postgres.store import PostgresStore
from landlane.testing.postgres_install import PostgresUnavailable
from landlane.testing.postgres_server import PostgresServer

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from bench.sizes import Sizes
    from landlane.store.sqlite.store import SqliteStore

    OpenStore = Callable[[], SqliteStore | PostgresStore]

_PATH = "src/api.py"
_LONG_MS = 600_000
_LOOK_SECONDS = 0.05
_PROCESSES = 4


def bench_waiting(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """Serve waiters in line, against the same number of claims without waiters, on both stores."""
    del lots  # there is one order: that of the line
    repository = new_uuid()
    for number in (sizes.waiters, sizes.many_waiters):
        with scratch(DISK) as folder:
            yield from _serve(number, "SQLite", folder, partial(open_sqlite, folder, repository))
    try:
        # Each waiter has two connections: its own, and the one that listens.
        server = PostgresServer.start(fsync=True, options={"max_connections": str(2 * sizes.waiters + 50)})
    except PostgresUnavailable as unavailable:
        yield Skipped(what=f"{sizes.waiters} waiters on PostgreSQL", reason=unavailable.reason)
        return
    with server, scratch(DISK) as folder:
        url = server.create_database()
        yield from _serve(sizes.waiters, "PostgreSQL", folder, partial(PostgresStore, url, repository))


def _serve(number: int, kind: str, folder: str, open_store: OpenStore) -> Iterator[Row]:
    """Let so many sessions wait for one path, and serve them all."""
    holder = Claimant(open_store(), folder, "holder")
    alone = [_time_claim(holder, f"src/{each}.py") for each in range(number)]
    holder.claim(_PATH)
    start = multiprocessing.get_context("spawn").Process
    parts = [range(first, number, _PROCESSES) for first in range(_PROCESSES)]
    processes = [start(target=_wait_in_threads, args=(folder, open_store, part)) for part in parts]
    for process in processes:
        process.start()
    while len(holder.store.view(list_waiters)) < number:
        if any(process.exitcode for process in processes):
            raise RuntimeError("a waiter could not join the line")
        time.sleep(_LOOK_SECONDS)
    begun = time.monotonic()
    _release(holder, _PATH)
    meanwhile: list[float] = []
    while any(process.is_alive() for process in processes):
        meanwhile.append(_time_claim(holder, f"docs/{len(meanwhile)}.md"))
        time.sleep(_LOOK_SECONDS)
    served = time.monotonic() - begun
    holder.store.close()
    what = f"{number} waiters served in line on {kind}, against {number} claims without waiters"
    yield Row(what=what, unit="ms", ours=served * 1e3, peer=sum(alone) * 1e3, aim=at_most(3))
    what = f"an unrelated claim while {number} are served on {kind}, against one without"
    ours, peer = statistics.median(meanwhile) * 1e3, statistics.median(alone) * 1e3
    yield Row(what=what, unit="ms", ours=ours, peer=peer, aim=at_most(2))


def _time_claim(claimant: Claimant, path: str) -> float:
    """Return the seconds that a claim and its release take."""
    begun = time.monotonic()
    claimant.claim(path)
    _release(claimant, path)
    return time.monotonic() - begun


def _wait_in_threads(folder: str, open_store: OpenStore, numbers: range) -> None:
    """Wait as so many sessions; the body of a process."""
    waiters = [Claimant(open_store(), folder, f"agent-{number}") for number in numbers]
    threads = [threading.Thread(target=_wait_and_release, args=(waiter,)) for waiter in waiters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _wait_and_release(claimant: Claimant) -> None:
    outcome = wait_for_claims(claimant.repo, claimant.session, claimant.request(_PATH), _LONG_MS)
    assert not outcome.refused, outcome
    _release(claimant, _PATH)


def _release(claimant: Claimant, path: str) -> None:
    release(claimant.repo, claimant.session, [parse(path, literal=True)])
