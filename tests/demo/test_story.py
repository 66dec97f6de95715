"""The tasks of the demo, their assignment to agents, the person's answers, and the measure of red time."""

from __future__ import annotations

from collections import Counter

import pytest

from landlane.demo.measure import Move, red_ms
from landlane.demo.sample_tasks import MOST_TASKS, assign, make_tasks
from landlane.demo.scripted_person import answer_to

pytestmark = pytest.mark.unit


def test_every_task_is_assigned_to_one_agent() -> None:
    tasks = make_tasks(1, MOST_TASKS)

    assigned = assign(tasks, 6, 1)

    assert len(assigned) == 6
    assert sorted(task.id for own in assigned.values() for task in own) == [task.id for task in tasks]


def test_the_same_seed_makes_the_same_tasks_and_assignment() -> None:
    assert make_tasks(3, 9) == make_tasks(3, 9)
    assert make_tasks(3, 9) != make_tasks(4, 9)
    assert list(assign(make_tasks(3, 9), 6, 3)) == list(assign(make_tasks(3, 9), 6, 3))


def test_exactly_one_task_is_duplicated() -> None:
    keys = Counter(task.key for task in make_tasks(1, MOST_TASKS))

    assert [key for key, count in keys.items() if count > 1] == ["health-check"]


def test_a_person_retries_a_task_twice_and_then_rejects_it() -> None:
    retries: Counter[str] = Counter()

    def verbs(gate: dict[str, object], times: int) -> list[str]:
        return [answer_to(gate, "I have looked at it", retries)[0] for _ in range(times)]

    assert verbs({"id": "G1", "about": {"retries": "T9"}}, 4) == ["approve", "approve", "reject", "reject"]
    assert verbs({"id": "G2", "about": {"retries": "T10"}}, 2) == ["approve", "approve"]
    assert verbs({"id": "G3", "about": None}, 4) == verbs({"id": "L3"}, 4) == ["approve"] * 4


def test_red_counts_from_a_red_tip_to_the_next_move_or_the_end() -> None:
    moves = [Move(at=0, commit="a"), Move(at=120, commit="b"), Move(at=150, commit="c")]

    assert red_ms(moves, {"a": True, "b": False, "c": True}, began=100, ended=200) == 30
    assert red_ms(moves, {"a": False, "b": True, "c": False}, began=100, ended=200) == 70
    assert red_ms(moves, {"a": True, "b": True, "c": False}, began=100, ended=140) == 0
