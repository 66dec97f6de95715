"""Estimate when the entries of a queue land, from how long their checks took before."""

from __future__ import annotations

from landlane.landing.model import QUEUED, TESTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.landing.model import Landing, Queue

FEWEST_SAMPLES = 3  # no estimate with fewer
_MAX_SAMPLES = 9
_MAX_CHECKS = 50


def add_sample(durations: Mapping[str, Sequence[int]], check: str, ms: int) -> dict[str, list[int]]:
    """Return the durations of the latest passing runs by check, with one more; old checks are forgotten."""
    kept = {name: list(samples) for name, samples in durations.items() if name != check}
    samples = [*durations.get(check, ()), ms][-_MAX_SAMPLES:]
    return {**dict(list(kept.items())[-_MAX_CHECKS + 1 :]), check: samples}


def estimate_check(queue: Queue, check: str) -> int | None:
    """Return how many milliseconds a check usually takes; None with fewer than three samples."""
    samples = sorted(queue.durations.get(check, ()))
    return samples[len(samples) // 2] if len(samples) >= FEWEST_SAMPLES else None


def estimate_batch(queue: Queue, checks: Sequence[str]) -> int | None:
    """Return how many milliseconds all checks usually take together."""
    times = [estimate_check(queue, check) for check in checks]
    known = [time for time in times if time is not None]
    return sum(known) if known and len(known) == len(times) else None


def estimate_entries(
    queue: Queue, landings: Sequence[Landing], checks: Sequence[str], batch: int, now: int
) -> dict[str, int]:
    """Return in how many milliseconds each entry lands if all checks pass; empty without an estimate.

    `landings` are the open entries in the order of their submission, `now` is wall-clock time.
    """
    total = estimate_batch(queue, checks)
    if total is None or queue.is_paused or queue.failing:
        return {}
    testing = [landing for landing in landings if landing.state == TESTING]
    queued = [landing for landing in landings if landing.state == QUEUED]
    left = max((_time_left(queue, landing, checks, total, now) for landing in testing), default=0)
    estimates = {landing.id: left for landing in testing}
    for index, landing in enumerate(queued):
        estimates[landing.id] = left + total * (index // max(batch, 1) + 1)
    return estimates


def _time_left(queue: Queue, landing: Landing, checks: Sequence[str], total: int, now: int) -> int:
    """Return how long the rest of a running batch takes."""
    done = {run.name for run in landing.check_runs}
    rest = [check for check in checks if check not in done and check != landing.check]
    running = (estimate_check(queue, landing.check) or 0) if landing.check else 0
    elapsed = now - landing.stage_at if landing.check and landing.stage_at else 0
    if not landing.check and not done:
        return total
    return max(running - elapsed, 0) + (estimate_batch(queue, rest) or 0)
