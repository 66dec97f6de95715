"""Claims on SQLite: the price of one, the last of a burst, and one among a million."""

from __future__ import annotations

import os
import time
from itertools import count
from typing import TYPE_CHECKING

from bench.bare import BareSqlite, create_bare_sqlite
from bench.crew import Crew
from bench.filling import fill
from bench.places import DISK, Claimant, open_sqlite, places, quickest_place, scratch
from bench.table import Row, at_most
from bench.timing import cpu_of_each, medians
from interlock.ids import new_uuid

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from bench.crew import Step
    from bench.sizes import Sizes
    from bench.table import Skipped


def bench_claim(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The CPU time of a claim, from its path to the answer, against the bare transaction."""
    for place in places():
        with scratch(place) as folder:
            bare_path = os.path.join(folder, "bare.db")
            create_bare_sqlite(bare_path)
            ours, bare = Claimant(open_sqlite(folder), folder, "ann"), BareSqlite(bare_path, "ann")
            candidates = {
                "ours": _batches(ours.claim, sizes.batch),
                "bare": _batches(bare.claim, sizes.batch),
            }
            found = medians(candidates, sizes.rounds, lots)
            ours.store.close()
            bare.close()
        what = f"CPU of a claim on SQLite, {place}, against the bare transaction"
        yield Row(what=what, unit="µs", ours=found["ours"], peer=found["bare"], aim=at_most(3))


def _batches(claim: Callable[[str], None], size: int) -> Callable[[], float]:
    """The CPU time of a claim, measured over a batch of new paths each time."""
    numbers = count()

    def claim_next() -> None:
        number = next(numbers)
        claim(f"src/part{number % 50}/f{number}.py")

    return lambda: cpu_of_each(claim_next, size)


def bench_burst(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """How long the last of many claimants waits that wake together, against SQLite's busy_timeout."""
    # On disk only: where a commit takes no time, nobody is in anybody's way for long.
    with scratch(DISK) as folder, _our_burst(folder, sizes) as ours, _bare_burst(folder, sizes) as bare:
        found = medians({"ours": _worst(ours), "bare": _worst(bare)}, sizes.burst_rounds, lots, warm=1)
    what = f"the last of {sizes.claimants} claimants of a burst, against busy_timeout"
    yield Row(what=what, unit="ms", ours=found["ours"], peer=found["bare"], aim=at_most(0.15))


def _our_burst(folder: str, sizes: Sizes) -> Crew:
    repository = new_uuid()
    open_sqlite(folder, repository).close()

    def hire(number: int) -> Step:
        return _one_claim(Claimant(open_sqlite(folder, repository), folder, f"a{number}").claim, number)

    return Crew(sizes.claimants, hire)


def _bare_burst(folder: str, sizes: Sizes) -> Crew:
    path = os.path.join(folder, "bare.db")
    create_bare_sqlite(path)

    def hire(number: int) -> Step:
        return _one_claim(BareSqlite(path, f"a{number}").claim, number)

    return Crew(sizes.claimants, hire)


def _one_claim(claim: Callable[[str], None], worker: int) -> Step:
    """A step that claims the worker's next path and answers how long after the start it had it."""
    numbers = count()

    def step(start_at: float) -> float:
        claim(f"src/w{worker}/f{next(numbers)}.py")
        return time.monotonic() - start_at

    return step


def _worst(crew: Crew) -> Callable[[], float]:
    return lambda: max(crew.round()) * 1e3


def bench_many(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """What a claim costs among very many live claims, against one among ten."""
    place = quickest_place()
    with scratch(place) as folder:
        few = Claimant(open_sqlite(folder, name="few.db"), folder, "few")
        many = Claimant(open_sqlite(folder, name="many.db"), folder, "many")
        fill(few.store, 10)
        fill(many.store, sizes.live_claims)
        candidates = {
            "few": _batches_all_over(few.claim, sizes, lots),
            "many": _batches_all_over(many.claim, sizes, lots),
        }
        found = medians(candidates, sizes.rounds, lots)
        few.store.close()
        many.store.close()
    what = f"CPU of a claim among {sizes.live_claims:,} live ones, {place}, against among 10"
    yield Row(what=what, unit="µs", ours=found["many"], peer=found["few"], aim=at_most(2))


def _batches_all_over(claim: Callable[[str], None], sizes: Sizes, lots: random.Random) -> Callable[[], float]:
    """As `_batches`, but in folders drawn from the whole large store, so that each is a cold one."""
    numbers = count()
    folders = max(sizes.live_claims // 100, 1)

    def claim_next() -> None:
        folder = lots.randrange(folders)
        claim(f"src/p{folder // 100:03d}/m{folder % 100:02d}/new{next(numbers)}.py")

    return lambda: cpu_of_each(claim_next, sizes.batch)
