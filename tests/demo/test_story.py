"""The story of the demo and its counting rules: who gets what, and for how long something was red."""

from __future__ import annotations

from collections import Counter

import pytest

from landlane.demo.measure import Move, red_ms
from landlane.demo.sample_tasks import MOST_TASKS, deal, make_tasks

pytestmark = pytest.mark.unit


def test_every_task_is_dealt_to_one_agent() -> None:
    tasks = make_tasks(1, MOST_TASKS)

    hands = deal(tasks, 6, 1)

    assert len(hands) == 6
    assert sorted(task.id for own in hands.values() for task in own) == [task.id for task in tasks]


def test_a_seed_tells_the_same_story_again() -> None:
    assert make_tasks(3, 9) == make_tasks(3, 9)
    assert make_tasks(3, 9) != make_tasks(4, 9)
    assert list(deal(make_tasks(3, 9), 6, 3)) == list(deal(make_tasks(3, 9), 6, 3))


def test_only_one_piece_of_work_is_there_twice() -> None:
    keys = Counter(task.key for task in make_tasks(1, MOST_TASKS))

    assert [key for key, count in keys.items() if count > 1] == ["health-check"]


def test_red_counts_from_a_red_tip_to_the_next_move_or_the_end() -> None:
    moves = [Move(at=0, commit="a"), Move(at=120, commit="b"), Move(at=150, commit="c")]

    assert red_ms(moves, {"a": True, "b": False, "c": True}, began=100, ended=200) == 30
    assert red_ms(moves, {"a": False, "b": True, "c": False}, began=100, ended=200) == 70
    assert red_ms(moves, {"a": True, "b": True, "c": False}, began=100, ended=140) == 0
