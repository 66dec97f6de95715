"""Keys, values, reducers and rules of versioned state, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed, NotAllowed
from landlane.settings import model as config
from landlane.state import key_rules as state

pytestmark = pytest.mark.unit

LIMIT = 65_536
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | TEXTS
JSON = st.recursive(
    LEAVES.filter(lambda leaf: leaf not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("5", 5),
        ("-1.5", -1.5),
        ('"a"', "a"),
        ("a", "a"),
        ("", ""),
        ("true", True),
        ("null", None),
        ('{"a": [1]}', {"a": [1]}),
        ("NaN", "NaN"),
        ("[1,", "[1,"),
        ("-Infinity", "-Infinity"),
    ],
)
def test_a_text_is_json_or_itself(text: str, meant: Any) -> None:
    assert state.parse_value(text) == meant


@given(JSON)
def test_what_is_encoded_reads_back(content: Any) -> None:
    assert state.parse_value(state.encode_value(content, LIMIT)) == content


@pytest.mark.parametrize("text", ["1e999", "-1e999"])
def test_a_number_beyond_all_bounds_is_refused(text: str) -> None:
    with pytest.raises(Malformed) as answer:
        state.encode_value(state.parse_value(text), LIMIT)
    assert answer.value.code == "BAD_VALUE"


@pytest.mark.parametrize("depth", [101, 500, 100_000])
def test_a_value_nested_too_deep_is_refused(depth: int) -> None:
    with pytest.raises(Malformed) as answer:
        state.encode_value(state.parse_value("[" * depth + "]" * depth), LIMIT)
    assert answer.value.code == "BAD_VALUE"


def test_the_limit_counts_bytes_and_is_allowed_itself() -> None:
    assert state.encode_value("ü", 4) == '"ü"'
    with pytest.raises(Malformed) as answer:
        state.encode_value("ü", 3)
    assert answer.value.code == "STATE_TOO_LARGE"


def test_the_settings_know_the_same_reducers() -> None:
    assert tuple(state.REDUCERS) == config.REDUCERS


@pytest.mark.slow
@given(st.lists(JSON, max_size=6))
def test_union_holds_each_once_and_keeps_the_order(items: list[Any]) -> None:
    united = state.reduce("union", None, items)
    assert state.reduce("union", united, items) == united
    assert state.reduce("append", united, "x")[:-1] == united


@given(st.lists(st.integers(), min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_numbers_makes_no_difference(items: list[int], dice: Any) -> None:
    shuffled = list(items)
    dice.shuffle(shuffled)
    for reducer in ("sum", "max", "min"):
        results: list[Any] = []
        for row in (items, shuffled):
            total = None
            for item in row:
                total = state.reduce(reducer, total, item)
            results.append(total)
        assert results[0] == results[1]


def test_merging_goes_deep_and_changes_neither_side() -> None:
    old = {"a": {"x": 1, "l": [1]}, "b": 1}
    new = {"a": {"y": 2, "l": [2]}, "b": {"z": 3}}

    assert state.reduce("merge", old, new) == {"a": {"x": 1, "y": 2, "l": [2]}, "b": {"z": 3}}
    assert old == {"a": {"x": 1, "l": [1]}, "b": 1}


@pytest.mark.parametrize(
    ("glob", "key", "fits"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("release/*", "release/x", True),
        ("release/*", "release/x/y", False),
        ("release/**", "release/x/y", True),
        ("{a,b}:*", "b:1", True),
        ("*", "x/y", False),
        ("**", "x/y", True),
        ("v[0-9]", "v7", True),
    ],
)
def test_a_rule_fits_by_the_globs_of_claims(glob: str, key: str, fits: bool) -> None:
    assert (state.rule_for(key, {glob: "yes"}) == "yes") is fits


def test_the_first_rule_that_fits_counts() -> None:
    rules = {"a/b": "first", "a/*": "second"}
    assert [state.rule_for(key, rules) for key in ("a/b", "a/c", "b")] == ["first", "second", None]


def test_a_step_that_the_order_does_not_know_can_be_left() -> None:
    state.check_order("k", ["a", "b"], "old", "a")
    with pytest.raises(NotAllowed):
        state.check_order("k", ["a", "b"], "b", "a")
