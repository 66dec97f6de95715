"""Runs as values: request, worker slots, progress, summary."""

from __future__ import annotations

from landlane.values import value

ALL_TAKEN = "all places are taken"  # the plainest reason to wait
STARTING = "starting"  # a keeper that has not taken its task yet


@value
class RunWish:
    """What is asked for. Without `tasks` everything that is ready; `is_standing` waits for more for ever."""

    workers: int
    tasks: frozenset[str] = frozenset()
    agent: str = ""
    until_empty: bool = False
    is_standing: bool = False
    is_offline: bool = False


@value
class Place:
    """One place of the pool and what goes on there, to look at."""

    task: str
    title: str
    agent: str
    attempt: int
    stage: str
    doing: str
    since: float  # on the monotonic clock
    heard: float
    cost_usd: float | None = None


@value
class Glance:
    """How everything stands, to look at."""

    places: tuple[Place, ...]
    workers: int
    ready: int
    blocked: int
    landing: int
    persons: int
    done: int
    dead: int
    waits: tuple[tuple[str, str], ...]  # task, and why it does not begin
    paused: str = ""
    is_draining: bool = False
    is_stopping: bool = False
    trouble: str = ""  # why nothing is known just now: the store is not to be had
    cost_usd: float = 0.0  # of what is known
    unknown_costs: int = 0  # attempts whose cost nobody knows


@value
class RunSummary:
    """What a run came to."""

    done: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    persons: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    attempts: int
    cost_usd: float = 0.0
    unknown_costs: int = 0
    paused: str = ""
    is_stopped: bool = False
