"""The timeline shows what the journal says, and only those who people look for."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from landlane.store.journal_chain import JournalEntry
from landlane.web.timeline import draw_lanes

pytestmark = pytest.mark.unit

HOUR = 3_600_000
COLOURS = defaultdict(lambda: 1)


def entry(minute: int, kind: str, agent: str, **data: object) -> JournalEntry:
    return JournalEntry(
        position=minute, number=minute, at=minute * 60_000, kind=kind, agent=agent,
        session="", data=json.dumps(data), hash="",
    )  # fmt: skip


def test_a_bar_is_as_long_as_the_attempt_although_its_end_is_recorded_twice() -> None:
    entries = [
        entry(50, "task.taken", "ann", task="T1", attempt=1),
        entry(53, "task.reported", "ann", task="T1"),
        entry(56, "task.done", "", task="T1"),
    ]

    (lane,) = draw_lanes(entries, 0, HOUR, COLOURS)

    assert [(bar.start, bar.width) for bar in lane.bars] == [(83.33, 5.0)]


def test_an_attempt_that_began_before_the_span_is_drawn_once_from_its_start() -> None:
    entries = [entry(6, "task.reported", "ann", task="T1"), entry(9, "task.dropped", "ann", task="T1")]

    (lane,) = draw_lanes(entries, 0, HOUR, COLOURS)

    assert [(bar.start, bar.width) for bar in lane.bars] == [(0.0, 10.0)]


def test_trials_of_the_doctor_and_bookkeeping_have_no_lane() -> None:
    entries = [
        entry(1, "claim.taken", "canary-abc", token=1, pattern="a"),
        entry(2, "runner.taken", "run", name="queue:main"),
        entry(3, "claim.taken", "ann", token=2, pattern="a.py"),
    ]

    assert [lane.name for lane in draw_lanes(entries, 0, HOUR, COLOURS)] == ["ann"]
