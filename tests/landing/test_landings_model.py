"""Landings as values: state changes, halves of a batch, names, and the error about missing checks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import landlane.landing
from landlane.landing.model import (
    OPEN,
    TRANSITIONS,
    Landing,
    LandingState,
    first_half,
    is_landing_id,
    no_checks_error,
)

pytestmark = pytest.mark.unit


def _entry(state: LandingState) -> Landing:
    return Landing(
        id="L1",
        branch="work",
        head="1" * 40,
        target="main",
        agent="ann",
        session="S1",
        holder="S2",
        state=state,
        submitted_at=0,
        machine="here",
        home="/repo",
        stage="merging",
    )


@pytest.mark.parametrize("after", LandingState)
@pytest.mark.parametrize("before", LandingState)
def test_an_entry_changes_its_state_as_the_table_allows(before: LandingState, after: LandingState) -> None:
    if after in TRANSITIONS[before]:
        changed = _entry(before).become(after, reason="why")
        assert (changed.state, changed.stage, changed.reason) == (after, "", "why")
    else:
        with pytest.raises(ValueError, match=f"L1 is {before} and cannot become {after}"):
            _entry(before).become(after)


def test_every_state_has_a_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(LandingState)


def test_no_code_changes_the_state_of_an_entry_without_the_table() -> None:
    folder = Path(landlane.landing.__file__).parent
    changes = [
        (file.name, function.name)
        for file in folder.glob("*.py")
        for function in ast.walk(ast.parse(file.read_text()))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) == "replace"
        and any(keyword.arg == "state" for keyword in call.keywords)
    ]

    assert changes == [("model.py", "become")]


@pytest.mark.parametrize(("count", "first"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 4)])
def test_the_first_half_is_the_larger_one_but_not_all(count: int, first: int) -> None:
    assert first_half(count) == first
    assert 0 < count - first < count


def test_the_open_states_are_some_of_the_states() -> None:
    assert set(OPEN) < set(LandingState)


def test_an_entry_holds_its_claims_under_its_id() -> None:
    assert is_landing_id("L7")
    for name in ("landing-L7", "L7x", "L", "G7", "Lena", ""):
        assert not is_landing_id(name)


def test_the_error_about_missing_checks_has_the_command_that_sets_them() -> None:
    error = no_checks_error("trunk")
    assert (error.code, error.exit_code) == ("NO_CHECKS", 2)
    assert error.message == "landlane.toml on trunk does not say how to test what lands"
    assert error.hint == """landlane config set landing.checks '["make test"]'"""
    assert no_checks_error("trunk", "tox -q").hint.endswith("""'["tox -q"]'""")
