"""The order of landing: as many as possible without a conflict, and stable where nothing else decides."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.landing.predict_conflicts import MAX_EXACT, best_order

pytestmark = pytest.mark.unit


def landed(order: list[str], conflicts: set[tuple[str, str]]) -> int:
    """How many land one after the other, when whoever conflicts with one that landed is sent back."""
    there: set[str] = set()
    for name in order:
        if not any((name, other) in conflicts or (other, name) in conflicts for other in there):
            there.add(name)
    return len(there)


def test_without_conflicts_the_order_stays() -> None:
    assert best_order(["c", "a", "b"], []) == ["c", "a", "b"]
    assert best_order([], []) == []


def test_branch_that_conflicts_with_many_is_ordered_behind_them() -> None:
    assert best_order(["hub", "a", "b"], [("hub", "a"), ("b", "hub")]) == ["a", "b", "hub"]


def test_of_two_that_conflict_the_first_stays_first() -> None:
    assert best_order(["a", "b"], [("b", "a")]) == ["a", "b"]


def test_branch_that_conflicts_with_the_target_is_ordered_last() -> None:
    assert best_order(["a", "b", "c"], [("a", "b")], last=["a"]) == ["b", "c", "a"]


names = [f"b{number}" for number in range(5)]
pairs = st.sets(st.sampled_from([(one, other) for one in names for other in names if one < other]))


@given(pairs)
def test_few_are_ordered_as_well_as_can_be(conflicts: set[tuple[str, str]]) -> None:
    order = best_order(names, conflicts)

    assert sorted(order) == names
    assert landed(order, conflicts) == max(landed(list(one), conflicts) for one in permutations(names))


@pytest.mark.slow
@given(st.sets(st.tuples(st.integers(0, 19), st.integers(0, 19)).filter(lambda pair: pair[0] < pair[1])))
def test_many_are_ordered_at_least_as_well_as_they_came(found: set[tuple[int, int]]) -> None:
    many = [str(number) for number in range(20)]
    assert len(many) > MAX_EXACT
    conflicts = {(str(one), str(other)) for one, other in found}

    order = best_order(many, conflicts)

    assert sorted(order) == sorted(many)
    free = [name for name in many if not any(name in pair for pair in conflicts)]
    assert landed(order, conflicts) >= len(free)
