"""Landings as values: halves, names, and the refusal of silence about checks."""

from __future__ import annotations

import pytest

from landlane.landing.model import OPEN, LandingState, entry_agent_name, first_half, no_checks_error

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("count", "first"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 4)])
def test_the_first_half_is_the_larger_and_never_all(count: int, first: int) -> None:
    assert first_half(count) == first
    assert 0 < count - first < count


def test_what_is_open_is_a_state() -> None:
    assert set(OPEN) < set(LandingState)


def test_an_entry_holds_its_claims_under_a_name_of_its_own() -> None:
    assert entry_agent_name("L7") == "landing-L7"


def test_silence_about_checks_is_answered_with_both_ways_to_speak() -> None:
    error = no_checks_error()
    assert (error.code, error.exit_code) == ("NO_CHECKS", 2)
    assert 'checks = ["make test"]' in error.hint
    assert "checks = [] for none" in error.hint
    assert "trunk" in no_checks_error("trunk").message
    assert "commit it on trunk" in no_checks_error("trunk").hint
