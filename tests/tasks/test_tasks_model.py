"""Tasks: which states follow which, what can be asked for, what comes first, and rings of waiting."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed, NotAllowed
from landlane.tasks.model import (
    DONE,
    DROPPED,
    FINAL,
    OPEN,
    TRANSITIONS,
    NewTask,
    TaskState,
    branch_of,
    check_new_task,
    check_transition,
    dependency_order,
    find_dependency_cycle,
    rank_of,
)

pytestmark = pytest.mark.unit

HOUR = 3_600_000


def test_every_state_has_its_row_in_the_one_table() -> None:
    assert set(TRANSITIONS) == set(TaskState)
    assert all(then in set(TaskState) for row in TRANSITIONS.values() for then in row)


def test_nothing_follows_done_or_dropped() -> None:
    assert {state for state, row in TRANSITIONS.items() if not row} == {DONE, DROPPED} == FINAL


def test_every_open_state_can_still_be_dropped_and_come_to_an_end() -> None:
    for state in OPEN:
        assert DROPPED in TRANSITIONS[state]
        reached = {state}
        while new := {then for one in reached for then in TRANSITIONS[one]} - reached:
            reached |= new
        assert DONE in reached


@pytest.mark.parametrize("now", list(TaskState))
def test_other_transitions_are_refused_with_the_allowed_ones(now: TaskState) -> None:
    for then in TaskState:
        if then in TRANSITIONS[now]:
            check_transition("T1", now, then)
        else:
            with pytest.raises(NotAllowed) as refused:
                check_transition("T1", now, then)
            assert refused.value.code == "TASK_WRONG_STATE"
            assert all(word in refused.value.hint for word in sorted(TRANSITIONS[now]))


def test_a_title_becomes_one_line() -> None:
    assert check_new_task(NewTask(title="  Parse \t the\n dates ")).title == "Parse the dates"


def test_names_given_twice_count_once() -> None:
    new = check_new_task(NewTask(title="a", after=("T1", "T2", "T1"), labels=("x", "x")))
    assert new.after == ("T1", "T2")
    assert new.labels == ("x",)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTask(title=" \n "), "NO_TITLE"),
        (NewTask(title="bell \x07"), "NO_TITLE"),
        (NewTask(title="x" * 301), "TEXT_TOO_LONG"),
        (NewTask(title="x", body="y" * 64_001), "TEXT_TOO_LONG"),
        (NewTask(title="x", body="nul \0"), "BAD_TEXT"),
        (NewTask(title="x", check="y" * 4001), "TEXT_TOO_LONG"),
        (NewTask(title="x", next_action="y" * 4001), "TEXT_TOO_LONG"),
        (NewTask(title="x", key="k" * 201), "TEXT_TOO_LONG"),
        (NewTask(title="x", kind="a/b"), "BAD_KIND"),
        (NewTask(title="x", role="r" * 65), "BAD_ROLE"),
        (NewTask(title="x", labels=("",)), "BAD_LABEL"),
        (NewTask(title="x", labels=tuple(map(str, range(51)))), "TOO_MANY"),
        (NewTask(title="x", paths=("a",) * 101), "TOO_MANY_PATTERNS"),
        (NewTask(title="x", after=tuple(f"T{n}" for n in range(1001))), "TOO_MANY"),
        (NewTask(title="x", priority=1001), "OUT_OF_RANGE"),
        (NewTask(title="x", priority=-1001), "OUT_OF_RANGE"),
        (NewTask(title="x", max_attempts=0), "OUT_OF_RANGE"),
        (NewTask(title="x", max_attempts=101), "OUT_OF_RANGE"),
    ],
)
def test_values_that_cannot_be_stored_are_refused(new: NewTask, code: str) -> None:
    with pytest.raises(Malformed) as refused:
        check_new_task(new)
    assert refused.value.code == code
    assert refused.value.hint


def test_a_step_of_priority_is_worth_an_hour() -> None:
    assert rank_of(5 * HOUR, 2) == rank_of(3 * HOUR, 0)
    assert rank_of(0, 1) < rank_of(0, 0) < rank_of(0, -1)


@pytest.mark.promise("tasks.nothing-starves", "A task of any priority eventually comes first.")
@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(0, 10**12))
def test_nothing_starves(low: int, high: int, ready_at: int) -> None:
    """However unimportant: from some day on, everything that is added comes behind it."""
    later = ready_at + 2001 * HOUR
    assert rank_of(ready_at, low) < rank_of(later, high)


def test_each_attempt_has_a_branch_of_its_own() -> None:
    assert branch_of("T7", 2) == "landlane/T7-2/work"


def test_a_cycle_is_listed_from_its_start() -> None:
    after = {"T1": ("T2",), "T2": ("T9", "T3"), "T3": ("T1",)}
    assert find_dependency_cycle(after, "T1") == ("T1", "T2", "T3", "T1")
    assert find_dependency_cycle(after, "T2") == ("T2", "T3", "T1", "T2")
    assert find_dependency_cycle(after, "T9") == ()
    assert find_dependency_cycle({"T1": ("T1",)}, "T1") == ("T1", "T1")


def test_a_cycle_elsewhere_is_not_a_cycle_of_this_task() -> None:
    assert find_dependency_cycle({"T1": ("T2",), "T2": ("T3",), "T3": ("T2",)}, "T1") == ()


def test_long_chains_are_walked_to_their_end() -> None:
    chain = {f"T{n}": (f"T{n + 1}",) for n in range(1, 20_000)}
    assert find_dependency_cycle(chain, "T1") == ()
    chain["T20000"] = ("T1",)
    assert len(find_dependency_cycle(chain, "T1")) == 20_001


names = st.sampled_from("abcdefgh")


@given(st.dictionaries(names, st.lists(names, max_size=3).map(tuple)))
def test_each_task_comes_after_its_dependencies_or_a_cycle_is_reported(
    after: dict[str, tuple[str, ...]],
) -> None:
    try:
        order = dependency_order(after)
    except Malformed as refused:
        ring = refused.facts["cycle"]
        assert ring[0] == ring[-1]
        assert all(later in after[one] for one, later in pairwise(ring))
    else:
        assert sorted(order) == sorted(after)
        for task, befores in after.items():
            assert all(order.index(before) < order.index(task) for before in befores if before in after)


def test_without_dependencies_the_order_stays() -> None:
    assert dependency_order({"b": (), "a": (), "c": ("elsewhere",)}) == ["b", "a", "c"]
