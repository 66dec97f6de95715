"""Measure how long a line of waiters takes to be served, and what an unrelated claim costs meanwhile."""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from typing import TYPE_CHECKING

from bench.places import DISK, Claimant, open_sqlite, scratch
from bench.table import Row, at_most
from landlane.claims.describe import list_waiters
from landlane.claims.held import release
from landlane.claims.wait import wait_for_claims
from landlane.ids import new_uuid
from landlane.patterns.pattern import parse

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from bench.sizes import Sizes
    from bench.table import Skipped

_PATH = "src/api.py"
_LONG_MS = 600_000
_LOOK_SECONDS = 0.05
_PROCESSES = 4


def bench_waiting(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """Serve waiters in line, against the same number of claims without waiters."""
    del lots  # there is one order: that of the line
    number = sizes.waiters
    with scratch(DISK) as folder:
        repository = new_uuid()
        holder = Claimant(open_sqlite(folder, repository), folder, "holder")
        alone = [_time_claim(holder, f"src/{each}.py") for each in range(number)]
        holder.claim(_PATH)
        start = multiprocessing.get_context("spawn").Process
        parts = [range(first, number, _PROCESSES) for first in range(_PROCESSES)]
        processes = [start(target=_wait_in_threads, args=(folder, repository, part)) for part in parts]
        for process in processes:
            process.start()
        while len(holder.store.view(list_waiters)) < number:
            time.sleep(_LOOK_SECONDS)
        begun = time.monotonic()
        _release(holder, _PATH)
        meanwhile: list[float] = []
        while any(process.is_alive() for process in processes):
            meanwhile.append(_time_claim(holder, f"docs/{len(meanwhile)}.md"))
            time.sleep(_LOOK_SECONDS)
        served = time.monotonic() - begun
        holder.store.close()
    what = f"{number} waiters served in line, against {number} claims without waiters"
    yield Row(what=what, unit="ms", ours=served * 1e3, peer=sum(alone) * 1e3, aim=at_most(3))
    what = "an unrelated claim while a line is served, against one without"
    ours, peer = statistics.median(meanwhile) * 1e3, statistics.median(alone) * 1e3
    yield Row(what=what, unit="ms", ours=ours, peer=peer, aim=at_most(2))


def _time_claim(claimant: Claimant, path: str) -> float:
    """Return the seconds that a claim and its release take."""
    begun = time.monotonic()
    claimant.claim(path)
    _release(claimant, path)
    return time.monotonic() - begun


def _wait_in_threads(folder: str, repository: str, numbers: range) -> None:
    """Wait as so many sessions; the body of a process."""
    waiters = [Claimant(open_sqlite(folder, repository), folder, f"agent-{number}") for number in numbers]
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
