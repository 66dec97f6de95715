"""Claims on PostgreSQL: many clients on disjoint paths, against one lock for all and a bare INSERT."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

from bench.bare import BarePostgres, create_bare_postgres
from bench.places import DISK, Claimant, scratch
from bench.table import Row, Skipped, at_least
from bench.timing import medians
from bench.worker_pool import WorkerPool
from landlane.claims.take import make_request, take_in
from landlane.ids import new_uuid
from landlane.patterns.pattern import parse
from landlane.store.postgres.store import PostgresStore
from landlane.testing.postgres_install import PostgresUnavailable
from landlane.testing.postgres_server import PostgresServer

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Generator, Iterator

    from bench.sizes import Sizes
    from bench.table import Aim
    from bench.worker_pool import Step

    Claim = Callable[[str], None]


class LonelyClaimant(Claimant):
    """Makes our own claim, but under one lock for the repository instead of locks along the path."""

    def claim(self, path: str) -> None:
        request = make_request(self.repo, (parse(path, literal=True),))
        outcome = self.repo.change(lambda tx: take_in(tx, self.repo, self.session, request), areas={"": True})
        assert not outcome.refused, f"{path} was not free"


def bench_postgres_lock(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The rate of claims on disjoint paths, against the same under one lock for the repository."""
    what = "claims/s on PostgreSQL, {}, against one lock for the repository"
    server = find_server()
    if isinstance(server, str):
        yield Skipped(what=what.format("clients"), reason=server)
        return
    with ExitStack() as stack:
        ours = stack.enter_context(_our_pool(server, sizes, Claimant))
        peers: dict[str, tuple[WorkerPool, Aim | None]] = {
            what: (stack.enter_context(_our_pool(server, sizes, LonelyClaimant)), at_least(4)),
            # It writes no journal and knows no sessions, and its lock is held for one round trip only. How
            # much is left to gain then depends on how long the disk takes to sync, so nothing is promised.
            f"{what}, bare": (stack.enter_context(_bare_pool(server, sizes, BarePostgres.claim_alone)), None),
        }
        yield from _compare(ours, peers, (sizes.clients[0], sizes.clients[-1]), sizes, lots)


def bench_postgres_insert(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The rate of claims on disjoint paths, against INSERT … ON CONFLICT of the exact path."""
    what = "claims/s on PostgreSQL, {}, against a bare INSERT … ON CONFLICT"
    server = find_server()
    if isinstance(server, str):
        yield Skipped(what=what.format("clients"), reason=server)
        return
    with ExitStack() as stack:
        ours = stack.enter_context(_our_pool(server, sizes, Claimant))
        bare = stack.enter_context(_bare_pool(server, sizes, BarePostgres.claim))
        yield from _compare(ours, {what: (bare, at_least(0.4))}, sizes.clients, sizes, lots)


def server_version() -> str:
    """Which PostgreSQL is measured, or why none."""
    server = find_server()
    return server if isinstance(server, str) else server.version


@cache
def find_server() -> PostgresServer | str:
    """A throw-away server on disk that syncs every commit, or why there is none; it stops when we end."""
    try:
        return PostgresServer.start(fsync=True)
    except PostgresUnavailable as unavailable:
        return unavailable.reason


@contextmanager
def _our_pool(server: PostgresServer, sizes: Sizes, kind: type[Claimant]) -> Generator[WorkerPool]:
    url, repository = server.create_database(), new_uuid()
    PostgresStore(url, repository).close()  # the tables are made once, before the workers start
    with scratch(DISK) as folder:

        def hire(number: int) -> Step:
            store = PostgresStore(url, repository, folder=folder)
            return _claims_for(sizes.rate_seconds, kind(store, folder, f"a{number}").claim, number)

        with WorkerPool(sizes.clients[-1], hire) as pool:
            yield pool


@contextmanager
def _bare_pool(
    server: PostgresServer, sizes: Sizes, claim: Callable[[BarePostgres, str], None]
) -> Generator[WorkerPool]:
    url = server.create_database()
    create_bare_postgres(url)

    def hire(number: int) -> Step:
        client = BarePostgres(url, f"a{number}")
        return _claims_for(sizes.rate_seconds, lambda path: claim(client, path), number)

    with WorkerPool(sizes.clients[-1], hire) as pool:
        yield pool


def _claims_for(seconds: float, claim: Claim, worker: int) -> Step:
    """A step that claims one path after the other for some time and answers how many."""
    numbers = count()

    def step(start_at: float) -> float:
        done = 0
        while time.monotonic() < start_at + seconds:
            number = next(numbers)
            claim(f"src/w{worker}/part{number % 50}/f{number}.py")
            done += 1
        return done

    return step


def _compare(
    ours: WorkerPool,
    peers: dict[str, tuple[WorkerPool, Aim | None]],
    clients: tuple[int, ...],
    sizes: Sizes,
    lots: random.Random,
) -> Iterator[Row]:
    """A row for each peer and number of clients; an aim counts for the largest number."""
    pools = {"ours": ours, **{what: pool for what, (pool, _) in peers.items()}}
    candidates = {
        f"{name} {number}": _rate(pool, number, sizes.rate_seconds)
        for name, pool in pools.items()
        for number in clients
    }
    found = medians(candidates, sizes.rate_rounds, lots, warm=1)
    for what, (_, aim) in peers.items():
        for number in clients:
            yield Row(
                what=what.format(f"{number} client{'s' if number > 1 else ''}"),
                unit="/s",
                ours=found[f"ours {number}"],
                peer=found[f"{what} {number}"],
                aim=aim if number == clients[-1] else None,
            )


def _rate(pool: WorkerPool, clients: int, seconds: float) -> Callable[[], float]:
    return lambda: sum(pool.round(clients)) / seconds
