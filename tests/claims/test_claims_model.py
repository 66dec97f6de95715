"""What a grant is, when it is over, who is in whose way, and what must be locked to judge it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.claims.model import (
    ClaimMode,
    Request,
    check_request,
    find_conflict,
    find_cycle,
)
from landlane.errors import Malformed
from landlane.ids import epoch_of, token_of
from landlane.patterns.pattern import Pattern, areas_of, overlap, parse
from landlane.sessions.model import Waiter, lease_end

pytestmark = pytest.mark.unit


def request(*texts: str, ttl_ms: int = 60_000) -> Request:
    return Request(patterns=tuple(parse(text) for text in texts), mode=ClaimMode.EXCLUSIVE, ttl_ms=ttl_ms)


# ----------------------------------------------------------------------------------------------- tokens


@given(st.integers(0, 2**21 - 1), st.integers(0, 2**32 - 1))
def test_a_token_tells_its_epoch_and_is_safe_in_javascript(epoch: int, number: int) -> None:
    token = token_of(epoch, number)

    assert epoch_of(token) == epoch
    assert token < 2**53


@given(
    st.tuples(st.integers(0, 2**21 - 1), st.integers(0, 2**32 - 1)),
    st.tuples(st.integers(0, 2**21 - 1), st.integers(0, 2**32 - 1)),
)
def test_tokens_are_in_the_order_of_epoch_then_number(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (token_of(*one) < token_of(*other)) == (one < other)


@pytest.mark.parametrize(("epoch", "number"), [(0, 2**32), (2**21, 0)])
def test_tokens_never_wrap_around(epoch: int, number: int) -> None:
    with pytest.raises(OverflowError):
        token_of(epoch, number)


# ----------------------------------------------------------------------------------------------- leases


@pytest.mark.parametrize(("granted_at", "seen_at", "end"), [(100, 50, 110), (50, 100, 110), (100, 100, 110)])
def test_a_lease_counts_from_the_later_of_grant_and_sign_of_life(
    granted_at: int, seen_at: int, end: int
) -> None:
    assert lease_end(granted_at, seen_at, 10) == end


# ---------------------------------------------------------------------------------------- in the way


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (ClaimMode.SHARED, ClaimMode.SHARED, False),
        (ClaimMode.SHARED, ClaimMode.EXCLUSIVE, True),
        (ClaimMode.EXCLUSIVE, ClaimMode.SHARED, True),
        (ClaimMode.EXCLUSIVE, ClaimMode.EXCLUSIVE, True),
    ],
)
def test_only_sharers_get_along(one: ClaimMode, other: ClaimMode, expected: bool) -> None:
    assert one.conflicts_with(other) is expected


def test_what_does_not_overlap_is_not_in_the_way() -> None:
    def held(mode: ClaimMode) -> Waiter:
        branches = parse("{docs,src/*.ts}").alternatives
        return Waiter(
            ticket=1,
            session="s-1",
            agent="ann",
            mode=mode,
            task="",
            since=0,
            alive_until=1,
            alternatives=branches,
            patterns=("",) * len(branches),
        )

    assert find_conflict(parse("src/{a,b}.py"), ClaimMode.EXCLUSIVE, held(ClaimMode.EXCLUSIVE)) is None
    assert (
        find_conflict(parse("src/{a.py,b.ts}"), ClaimMode.EXCLUSIVE, held(ClaimMode.EXCLUSIVE))
        == held(ClaimMode.EXCLUSIVE).alternatives[1]
    )
    assert find_conflict(parse("src/{a.py,b.ts}"), ClaimMode.SHARED, held(ClaimMode.SHARED)) is None


# --------------------------------------------------------------------------------------------- requests


def test_a_sensible_request_is_taken_as_it_is() -> None:
    asked = request("src", "docs")

    assert check_request(asked, max_ttl_ms=60_000) is asked


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (request(), "NO_PATTERN"),
        (request(*(f"src/{number}" for number in range(1001))), "TOO_MANY_PATTERNS"),
        (request("src", ttl_ms=999), "TTL_OUT_OF_RANGE"),
        (request("src", ttl_ms=60_001), "TTL_OUT_OF_RANGE"),
    ],
    ids=["nothing", "too-many", "too-short", "too-long"],
)
def test_other_requests_are_refused(asked: Request, code: str) -> None:
    with pytest.raises(Malformed) as caught:
        check_request(asked, max_ttl_ms=60_000)

    assert (caught.value.code, caught.value.exit_code) == (code, 2)


# ----------------------------------------------------------------------------------------------- rings


def ring(graph: dict[str, str], start: str = "a") -> tuple[str, ...]:
    return find_cycle(start, lambda session: graph.get(session, ""))


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({}, ()),
        ({"a": "b"}, ()),
        ({"a": "b", "b": "a"}, ("a", "b", "a")),
        ({"a": "b", "b": "c", "c": "a"}, ("a", "b", "c", "a")),
        ({"a": "bc", "b": "d", "c": "a"}, ("a", "c", "a")),
        ({"a": "b", "b": "c", "c": "b"}, ()),
        ({"a": "bc", "b": "d", "c": "d", "d": "e"}, ()),
    ],
)
def test_the_ring_that_one_would_close_is_found_and_no_other(
    graph: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert ring(graph) == expected


@given(st.dictionaries(st.sampled_from("abcdef"), st.text("abcdef", max_size=4)))
def test_a_ring_is_found_exactly_when_one_can_come_back(graph: dict[str, str]) -> None:
    reachable: set[str] = set()
    edge = set(graph.get("a", ""))
    while edge - reachable:
        reachable |= edge
        edge = {blocker for session in edge for blocker in graph.get(session, "")}
    found = ring(graph)

    assert bool(found) == ("a" in reachable)
    for waiter, blocker in itertools.pairwise(found):
        assert blocker in graph[waiter]
    if found:
        assert found[0] == found[-1] == "a"


def test_a_line_of_a_thousand_waiters_is_searched_to_its_end() -> None:
    graph = {number: [number + 1] for number in range(900)}

    assert find_cycle("0", lambda session: [str(n) for n in graph.get(int(session), [])]) == ()


# ----------------------------------------------------------------------------------------------- areas

PATTERNS = st.builds(
    parse,
    st.lists(st.sampled_from(["a", "b", "*", "**", "a*", "{a,b}"]), min_size=1, max_size=3).map("/".join),
)


def test_the_way_to_a_key_is_locked_together_and_the_key_alone() -> None:
    assert areas_of((parse("src/api/*.py"), parse("src"))) == {"": False, "src": True, "src/api": True}
    assert areas_of((parse("deploy:prod"),)) == {"//deploy:prod": True}


@given(PATTERNS, PATTERNS)
def test_two_requests_that_could_meet_never_hold_their_locks_at_once(one: Pattern, other: Pattern) -> None:
    mine, theirs = areas_of((one,)), areas_of((other,))
    excluded = any(key in theirs and (alone or theirs[key]) for key, alone in mine.items())

    if overlap(one, other):
        assert excluded
