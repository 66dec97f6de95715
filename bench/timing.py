"""Measuring on a machine that others use too: interleaved, shuffled rounds, and medians."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import chdir
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")


def medians(
    candidates: Mapping[str, Callable[[], float]], rounds: int, lots: random.Random, warm: int = 2
) -> dict[str, float]:
    """The median of each candidate: every round runs each of them once, in a new order.

    The first `warm` rounds do not count. There are fewer of them than of those that count.
    """
    warm = min(warm, rounds - 1)  # a single round says nothing about speed anyway
    found: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(warm + rounds):
        for name in lots.sample(list(candidates), len(candidates)):
            measured = candidates[name]()
            if number >= warm:
                found[name].append(measured)
    return {name: statistics.median(values) for name, values in found.items()}


def cpu_of_each(action: Callable[[T], object], items: Sequence[T]) -> float:
    """The CPU time that this process needs for one of these items, in microseconds."""
    start = time.process_time()
    for item in items:
        action(item)
    return (time.process_time() - start) / len(items) * 1e6


def cpu_of_child(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    expected: int = 0,
    given: str = os.devnull,
) -> float:
    """The CPU time in milliseconds of a program and its children, from start to end, with `given` to read.

    Raises:
        RuntimeError: it ended with another exit code than expected.
    """
    silence = [
        (os.POSIX_SPAWN_OPEN, 0, given, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    with chdir(folder):  # posix_spawn itself cannot
        pid = os.posix_spawn(command[0], list(command), dict(environment), file_actions=silence)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != expected:
        raise RuntimeError(f"exit code {code}, not {expected}: {' '.join(command)}")
    return (usage.ru_utime + usage.ru_stime) * 1e3
