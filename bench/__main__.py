"""Runs the benches that were named, or all, and prints one table."""

from __future__ import annotations

import argparse
import platform
import random
import sqlite3
import sys
import time
from typing import TYPE_CHECKING

from bench.commits import bench_commit
from bench.fresh import bench_command
from bench.git_hooks import bench_git_hooks
from bench.hooks import bench_first_edit, bench_lean
from bench.landings import bench_landings
from bench.mcp import bench_mcp
from bench.postgres_claims import bench_postgres_insert, bench_postgres_lock, server_version
from bench.resident import bench_resident
from bench.running import bench_run
from bench.sandbox import bench_sandbox
from bench.shell import bench_shell
from bench.sizes import FULL, QUICK, TINY
from bench.sqlite_claims import bench_burst, bench_claim, bench_many
from bench.table import Skipped, draw
from bench.tasks import bench_next, bench_tasks
from bench.waiting import bench_waiting
from bench.workspaces import bench_open, bench_rescue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.sizes import Sizes
    from bench.table import Row

    Bench = Callable[[Sizes, random.Random], Iterator[Row | Skipped]]

BENCHES: dict[str, Bench] = {
    "claim": bench_claim,
    "burst": bench_burst,
    "many": bench_many,
    "waiting": bench_waiting,
    "postgres-lock": bench_postgres_lock,
    "postgres-insert": bench_postgres_insert,
    "tasks": bench_tasks,
    "next": bench_next,
    "open": bench_open,
    "rescue": bench_rescue,
    "command": bench_command,
    "lean": bench_lean,
    "first-edit": bench_first_edit,
    "landings": bench_landings,
    "commit": bench_commit,
    "git-hooks": bench_git_hooks,
    "resident": bench_resident,
    "sandbox": bench_sandbox,
    "shell": bench_shell,
    "mcp": bench_mcp,
    "run": bench_run,
}
NOTE = "Only the ratios count: both sides were measured in the same run, in turns, and medians were taken."


def main(words: list[str] | None = None) -> int:
    """Measure, and print the table; a missed aim is shown, a bench that cannot run to its end is an error."""
    options = _read(words)
    sizes = TINY if options.tiny else QUICK if options.quick else FULL
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    names = options.names or list(BENCHES)
    started = time.monotonic()
    print(_describe(seed, names), flush=True)
    results: list[Row | Skipped] = []
    has_failed = False
    for name in names:
        print(f"{time.monotonic() - started:5.1f} s  {name} …", file=sys.stderr, flush=True)
        try:
            results += BENCHES[name](sizes, random.Random(seed))
        except RuntimeError as error:  # the other rows are still worth seeing
            has_failed = True
            results.append(Skipped(what=name, reason=f"it FAILED: {error}"))
    print(f"\n{draw(results)}\n\n{NOTE} It took {time.monotonic() - started:.0f} s.")
    return int(has_failed)


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


def _describe(seed: int, names: list[str]) -> str:
    is_asked_for = any(name.startswith(("postgres", "resident")) for name in names)
    postgres = server_version() if is_asked_for else "not asked for"
    return (
        f"seed {seed}; Python {platform.python_version()}; SQLite {sqlite3.sqlite_version}; "
        f"PostgreSQL: {postgres}"
    )


if __name__ == "__main__":
    sys.exit(main())
