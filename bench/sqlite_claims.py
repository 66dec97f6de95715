"""Claims on SQLite: the price of one, the last of a burst, and one among a million."""

from __future__ import annotations

import os
import time
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from bench.bare import BareSqlite, create_bare_sqlite
from bench.filling import PER_FOLDER, fill, folder_of
from bench.places import DISK, Claimant, open_sqlite, places, quickest_place, scratch
from bench.table import Row, at_most
from bench.timing import cpu_of_each, medians
from bench.worker_pool import WorkerPool
from landlane.ids import new_uuid

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from bench.sizes import Sizes
    from bench.table import Skipped
    from bench.worker_pool import Step

T = TypeVar("T")


def bench_claim(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The CPU time of taking a claim, journal and all, against the bare transaction."""
    for place in places():
        with scratch(place) as folder:
            bare_path = os.path.join(folder, "bare.db")
            create_bare_sqlite(bare_path)
            ours, bare = Claimant(open_sqlite(folder), folder, "ann"), BareSqlite(bare_path, "ann")
            candidates = {
                "ours": _batches(ours.take, ours.request, sizes.batch),
                "bare": _batches(bare.claim, str, sizes.batch),
            }
            found = medians(candidates, sizes.rounds, lots)
            ours.store.close()
            bare.close()
        what = f"CPU of a claim on SQLite, {place}, against the bare transaction"
        yield Row(what=what, unit="µs", ours=found["ours"], peer=found["bare"], aim=at_most(3))


def _batches(act: Callable[[T], None], prepare: Callable[[str], T], size: int) -> Callable[[], float]:
    """The CPU time of a claim, measured over a batch of new paths each time."""
    numbers = count()

    def measure() -> float:
        batch = [next(numbers) for _ in range(size)]
        return cpu_of_each(act, [prepare(f"src/part{number % 50}/f{number}.py") for number in batch])

    return measure


def bench_burst(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """How long the last of many claimants waits that wake together, against SQLite's busy_timeout."""
    # On disk only: where a commit takes no time, writers hardly wait for each other.
    with scratch(DISK) as folder, _our_burst(folder, sizes) as ours, _bare_burst(folder, sizes) as bare:
        found = medians({"ours": _worst(ours), "bare": _worst(bare)}, sizes.burst_rounds, lots, warm=1)
    what = f"the last of {sizes.claimants} claimants of a burst, against busy_timeout"
    yield Row(what=what, unit="ms", ours=found["ours"], peer=found["bare"], aim=at_most(0.15))


def _our_burst(folder: str, sizes: Sizes) -> WorkerPool:
    repository = new_uuid()
    open_sqlite(folder, repository).close()

    def hire(number: int) -> Step:
        return _one_claim(Claimant(open_sqlite(folder, repository), folder, f"a{number}").claim, number)

    return WorkerPool(sizes.claimants, hire)


def _bare_burst(folder: str, sizes: Sizes) -> WorkerPool:
    path = os.path.join(folder, "bare.db")
    create_bare_sqlite(path)

    def hire(number: int) -> Step:
        return _one_claim(BareSqlite(path, f"a{number}").claim, number)

    return WorkerPool(sizes.claimants, hire)


def _one_claim(claim: Callable[[str], None], worker: int) -> Step:
    """A step that claims the worker's next path and answers how long after the start it had it."""
    numbers = count()

    def step(start_at: float) -> float:
        claim(f"src/w{worker}/f{next(numbers)}.py")
        return time.monotonic() - start_at

    return step


def _worst(pool: WorkerPool) -> Callable[[], float]:
    return lambda: max(pool.round()) * 1e3


def bench_many(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """Measure what a claim costs among very many live claims, against one among ten."""
    place = quickest_place()
    with scratch(place) as folder:
        few_store, many_store = open_sqlite(folder, name="few.db"), open_sqlite(folder, name="many.db")
        fill(few_store, 10)
        fill(many_store, sizes.live_claims)
        few, many = Claimant(few_store, folder, "few"), Claimant(many_store, folder, "many")
        candidates = {
            "few": _batches_all_over(few.claim, sizes, lots),
            "many": _batches_all_over(many.claim, sizes, lots),
        }
        found = medians(candidates, sizes.rounds, lots)
        few_store.close()
        many_store.close()
    what = f"CPU of a claim among {sizes.live_claims:,} live ones, {place}, against among 10"
    yield Row(what=what, unit="µs", ours=found["many"], peer=found["few"], aim=at_most(2))


def _batches_all_over(claim: Callable[[str], None], sizes: Sizes, lots: random.Random) -> Callable[[], float]:
    """A complete claim, in folders drawn from all of the large store, so that most are cold ones."""
    numbers = count()
    folders = max(sizes.live_claims // PER_FOLDER, 1)

    def measure() -> float:
        drawn = [folder_of(lots.randrange(folders)) for _ in range(sizes.batch)]
        return cpu_of_each(claim, [f"{folder}/new{next(numbers)}.py" for folder in drawn])

    return measure
