"""Estimates of when landings land, and landings as text."""

from __future__ import annotations

from typing import Any

import pytest

from landlane.landing.estimate import add_sample, estimate_check, estimate_entries
from landlane.landing.model import HELD, QUEUED, TESTING, Landing, LandingState, Queue
from landlane.landing.to_text import about, state_text

pytestmark = pytest.mark.unit

NOW = 1_000_000


def landing(number: int, state: LandingState = QUEUED, **fields: Any) -> Landing:
    return Landing(
        id=f"L{number}",
        branch=f"b{number}",
        head="h",
        target="main",
        agent="ann",
        session="s",
        holder="s",
        state=state,
        submitted_at=NOW - 120_000,
        machine="m",
        home="/",
        **fields,
    )


def queue(*samples: int, **fields: Any) -> Queue:
    return Queue(id="main", target="main", durations={"make test": list(samples)}, **fields)


def test_no_estimate_with_fewer_than_three_samples() -> None:
    assert estimate_check(queue(70_000, 70_000), "make test") is None
    assert estimate_check(queue(60_000, 70_000, 900_000), "make test") == 70_000
    assert estimate_check(queue(1, 2, 3), "lint") is None


def test_the_latest_samples_count() -> None:
    durations: dict[str, list[int]] = {}
    for number in range(20):
        durations = add_sample(durations, "make test", number)
    assert durations == {"make test": list(range(11, 20))}


def test_each_entry_waits_for_the_batches_ahead_of_it() -> None:
    running = landing(1, TESTING, check="make test", stage_at=NOW - 41_000)
    entries = [running, landing(2), landing(3), landing(4), landing(5, HELD)]

    found = estimate_entries(queue(70_000, 70_000, 70_000), entries, ["make test"], 2, NOW)

    assert found == {"L1": 29_000, "L2": 99_000, "L3": 99_000, "L4": 169_000}


@pytest.mark.parametrize(
    ("known", "checks"),
    [
        (queue(1, 2), ["make test"]),
        (queue(1, 2, 3), ["make test", "lint"]),
        (queue(1, 2, 3), []),
        (queue(1, 2, 3, failing={"commit": "c"}), ["make test"]),
    ],
)
def test_no_estimate_is_better_than_a_guess(known: Queue, checks: list[str]) -> None:
    assert estimate_entries(known, [landing(1)], checks, 8, NOW) == {}


def test_states_as_people_read_them() -> None:
    running = landing(1, TESTING, check="make test", stage_at=NOW - 41_000)
    assert state_text(running, NOW) == "testing make test (0:41)"
    assert state_text(landing(2, TESTING, tested_with="L1"), NOW) == "tested with L1"
    assert state_text(landing(3, HELD), NOW) == "needs you (2 min)"
    assert state_text(landing(4), NOW) == "queued"
    assert [about(ms) for ms in (1, 29_000, 70_000, 100_000)] == [
        "about 10 s",
        "about 30 s",
        "about 1 min",
        "about 2 min",
    ]
