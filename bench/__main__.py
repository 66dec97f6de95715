"""Runs the benches that were named, or all, and prints one table."""

from __future__ import annotations

import argparse
import platform
import random
import sqlite3
import sys
import time
from typing import TYPE_CHECKING

from bench.fresh import bench_command, bench_lean
from bench.postgres_claims import bench_postgres_insert, bench_postgres_lock, server_version
from bench.sizes import FULL, QUICK, TINY
from bench.sqlite_claims import bench_burst, bench_claim, bench_many
from bench.table import draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.sizes import Sizes
    from bench.table import Row, Skipped

    Bench = Callable[[Sizes, random.Random], Iterator[Row | Skipped]]

BENCHES: dict[str, Bench] = {
    "claim": bench_claim,
    "burst": bench_burst,
    "many": bench_many,
    "postgres-lock": bench_postgres_lock,
    "postgres-insert": bench_postgres_insert,
    "command": bench_command,
    "lean": bench_lean,
}
NOTE = "Only the ratios count: both sides were measured in the same run, in turns, and medians were taken."


def main(words: list[str] | None = None) -> int:
    """Measure, and print the table."""
    options = _read(words)
    sizes = TINY if options.tiny else QUICK if options.quick else FULL
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(_describe(seed), flush=True)
    started = time.monotonic()
    results: list[Row | Skipped] = []
    for name in options.names or BENCHES:
        print(f"… {name}", file=sys.stderr, flush=True)
        results += BENCHES[name](sizes, random.Random(seed))
    print(f"\n{draw(results)}\n\n{NOTE} It took {time.monotonic() - started:.0f} s.")
    return 0


def _read(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The measured comparison.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(BENCHES)}")
    parser.add_argument("--quick", action="store_true", help="a first look: fewer rounds, shakier ratios")
    parser.add_argument("--tiny", action="store_true", help="for tests: shows that it runs, and nothing else")
    parser.add_argument("--seed", type=int, help="for the order of the rounds and the paths drawn")
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"no bench is called {unknown[0]}; there are {', '.join(BENCHES)}")
    return options


def _describe(seed: int) -> str:
    return (
        f"seed {seed}; Python {platform.python_version()}; SQLite {sqlite3.sqlite_version}; "
        f"PostgreSQL: {server_version()}"
    )


if __name__ == "__main__":
    sys.exit(main())
