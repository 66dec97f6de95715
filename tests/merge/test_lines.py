"""Merging lines: what is taken from whom, what is left to decide, and how long it may take."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.merge.lines import Hunk, changes, clean_lines, matches, merge_lines

pytestmark = pytest.mark.unit

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "- x"]), max_size=12)


def test_changes_far_apart_are_both_taken() -> None:
    base = list("abcdefg")
    assert clean_lines(merge_lines(base, ["A", *base[1:]], [*base[:-1], "G"])) == [*"AbcdefG"]


def test_changes_that_touch_are_left_to_decide() -> None:
    merged = merge_lines(list("abcd"), list("aBcd"), list("abCd"))
    assert merged == ["a", Hunk(base=("b", "c"), ours=("B", "c"), theirs=("b", "C"), at=1), "d"]


def test_the_same_change_on_both_sides_is_taken_once() -> None:
    assert merge_lines(list("abc"), list("aXc"), list("aXc")) == list("aXc")


def test_two_insertions_at_one_place_are_left_to_decide() -> None:
    assert merge_lines(["a"], ["a", "x"], ["a", "y"])[1] == Hunk(base=(), ours=("x",), theirs=("y",), at=1)


@given(LINES, LINES)
def test_matches_grow_on_both_sides_and_are_equal(left: list[str], right: list[str]) -> None:
    pairs = matches(left, right)
    assert all(left[i] == right[j] for i, j in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))


@given(LINES, LINES)
def test_changes_lead_from_the_base_to_the_side(base: list[str], side: list[str]) -> None:
    found: list[str] = []
    at = 0
    for change in changes(base, side):
        found += [*base[at : change.start], *change.lines]
        at = change.end
    assert [*found, *base[at:]] == side


@given(LINES, LINES, LINES)
def test_a_merge_is_the_same_from_both_sides(base: list[str], ours: list[str], theirs: list[str]) -> None:
    assert clean_lines(merge_lines(base, ours, theirs)) == clean_lines(merge_lines(base, theirs, ours))


@given(LINES, LINES)
def test_a_side_without_change_leaves_the_other(base: list[str], side: list[str]) -> None:
    assert (
        merge_lines(base, base, side)
        == merge_lines(base, side, base)
        == merge_lines(base, side, side)
        == side
    )


def test_long_files_with_few_distinct_lines_merge_in_time() -> None:
    base = [str(number % 7) if number % 3 else "" for number in range(20_000)]
    ours = ["ours", *base[:9000], "more", *base[9001:]]
    theirs = [*base[:15_000], *base[15_004:], "theirs"]
    start = time.process_time()
    merged = clean_lines(merge_lines(base, ours, theirs))
    assert time.process_time() - start < 2
    assert merged is not None
    assert (merged[0], merged[-1], len(merged)) == ("ours", "theirs", 19_998)


def test_long_files_without_anything_in_common_end_in_time() -> None:
    base, ours, theirs = ([f"{number * factor % 101}" for number in range(20_000)] for factor in (1, 7, 31))
    start = time.process_time()
    merge_lines(base, ours, theirs)
    assert time.process_time() - start < 4
