"""How much each bench does: enough for steady ratios, for a first look, or to run at all."""

from __future__ import annotations

from landlane.values import value


@value
class Sizes:
    """The numbers that decide how long a run takes."""

    rounds: int  # of batches of claims, ours and the peer's
    batch: int  # claims in a batch
    burst_rounds: int
    claimants: int  # processes in a burst
    waiters: int  # in line for one path
    many_waiters: int  # in line for one path, where each needs no connection to a server
    live_claims: int  # in the large store
    rate_rounds: int
    rate_seconds: float  # how long the clients of one round claim
    clients: tuple[int, ...]  # the last number is the one that aims are judged at
    process_rounds: int  # fresh processes of each kind
    lean_claims: int  # live claims while the lean decision is measured
    tree_files: int  # files of the repository that checkouts and landings are measured in
    branches: int  # that land
    commit_files: int  # in the repository that is committed to
    open_rounds: int  # of workspaces opened, ours and git's
    crowds: tuple[int, ...]  # how many are opened at once
    opened_files: int  # in the repository that workspaces are made of
    rescue_rounds: int
    shell_rounds: int  # of the hooks around a shell call
    shell_files: int  # in the tree that the shell runs in
    rescue_files: int  # in the dirty tree that is rescued
    rescue_bytes: int  # in each of them
    run_workers: int  # at once
    run_tasks: int
    run_seconds: float  # that each task takes


FULL = Sizes(
    rounds=60,
    batch=50,
    burst_rounds=25,
    claimants=32,
    waiters=200,
    many_waiters=1000,
    live_claims=1_000_000,
    rate_rounds=9,
    rate_seconds=0.8,
    clients=(1, 8, 32),
    process_rounds=80,
    lean_claims=1000,
    commit_files=10_000,
    tree_files=10_000,
    branches=200,
    open_rounds=3,
    crowds=(1, 8, 32),
    opened_files=10_000,
    rescue_rounds=3,
    shell_rounds=9,
    shell_files=100_000,
    rescue_files=1000,
    rescue_bytes=1_000_000,
    run_workers=20,
    run_tasks=200,
    run_seconds=10.0,
)

QUICK = Sizes(
    rounds=10,
    batch=30,
    burst_rounds=2,
    claimants=32,
    waiters=40,
    many_waiters=100,
    live_claims=50_000,
    rate_rounds=2,
    rate_seconds=0.2,
    clients=(1, 8, 32),
    process_rounds=8,
    lean_claims=1000,
    commit_files=10_000,
    tree_files=2_000,
    branches=40,
    open_rounds=2,
    crowds=(1, 8),
    opened_files=10_000,
    rescue_rounds=1,
    shell_rounds=2,
    shell_files=100_000,
    rescue_files=200,
    rescue_bytes=1_000_000,
    run_workers=8,
    run_tasks=40,
    run_seconds=3.0,
)

TINY = Sizes(
    rounds=2,
    batch=3,
    burst_rounds=1,
    claimants=3,
    waiters=6,
    many_waiters=12,
    live_claims=200,
    rate_rounds=1,
    rate_seconds=0.05,
    clients=(2,),
    process_rounds=1,
    lean_claims=20,
    commit_files=20,
    tree_files=30,
    branches=2,
    open_rounds=1,
    crowds=(2,),
    opened_files=20,
    rescue_rounds=1,
    shell_rounds=1,
    shell_files=20,
    rescue_files=3,
    rescue_bytes=1000,
    run_workers=2,
    run_tasks=2,
    run_seconds=0.1,
)
