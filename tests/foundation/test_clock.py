"""Clocks and lengths of time, as machines count them and as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.clock import SystemClock, duration_text, parse_duration, read_boot_id, rfc3339
from landlane.errors import Malformed
from landlane.testing.fake_clock import FakeClock

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("30 min", 1_800_000),
        ("1 min 31 s", 91_000),
        ("2 h 5 min", 7_500_000),
        ("5 m", 300_000),
        ("45s", 45_000),
        ("30m", 1_800_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
        ("250ms", 250),
        ("1.5h", 5_400_000),
        (".5s", 500),
        ("1s500ms", 1_500),
        (" 30M ", 1_800_000),
        ("0", 0),
        ("0s", 0),
        ("1.001s", 1_001),
    ],
)
def test_lengths_of_time_are_understood(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "s",
        "m5",
        "-5s",
        "5x",
        "45",
        "1.5",
        "1 5m",
        "1h30",
        "1.2.3s",
        ".",
        "1e3s",
        "1_000s",
        "٣s",
        "inf",
        "nan",
        "5s!",
        "9" * 400,
        "9" * 400 + "w",
        "1000000000000000w",
    ],
)
def test_other_texts_are_no_length_of_time(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_duration(text, what="ttl")

    assert (caught.value.code, caught.value.exit_code) == ("BAD_DURATION", 2)
    assert caught.value.message.startswith("ttl")
    assert len(caught.value.message) < 200


@given(st.text(max_size=12))
def test_any_text_is_a_length_of_time_or_refused(text: str) -> None:
    try:
        length = parse_duration(text)
    except Malformed:
        return
    assert length >= 0


@given(st.integers(min_value=1, max_value=300_000), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_whole_numbers_are_exact(number: int, unit: str) -> None:
    sizes = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

    assert parse_duration(f"{number}{unit}") == number * sizes[unit]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0ms"),
        (0, "0ms"),
        (999, "999ms"),
        (1000, "1s"),
        (59_999, "59s"),
        (60_000, "1m"),
        (61_000, "1m1s"),
        (3_600_000, "1h"),
        (3_601_000, "1h"),
        (5_400_000, "1h30m"),
        (90_061_000, "1d1h"),
        (14 * 86_400_000, "14d"),
    ],
)
def test_a_length_of_time_is_told_in_its_two_largest_units(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


@given(st.integers(min_value=1000, max_value=10**12))
def test_what_is_told_can_be_typed_again(milliseconds: int) -> None:
    answer = parse_duration(duration_text(milliseconds))

    assert answer <= milliseconds
    assert answer > milliseconds * 0.95 or milliseconds - answer < 60_000


@pytest.mark.parametrize(
    ("wall_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_767_322_245_250, "2026-01-02T02:50:45.250Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (10**17, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_instants_are_written_as_rfc_3339_in_utc(wall_ms: int, text: str) -> None:
    assert rfc3339(wall_ms) == text


def test_an_instant_before_1970_is_still_written() -> None:
    assert rfc3339(-1).startswith("1970-01-01T00:00:00.")


def test_the_machines_boot_clock_never_goes_back() -> None:
    clock = SystemClock()
    instants = [clock.boot_ms() for _ in range(1000)]

    assert instants == sorted(instants)
    assert clock.is_real()
    assert clock.boot_id() == read_boot_id() != ""


# ------------------------------------------------------------------------------------------- for tests


def test_a_fake_clock_stands_still_until_it_is_moved() -> None:
    clock = FakeClock()
    before = (clock.boot_ms(), clock.wall_ms(), clock.boot_id(), clock.server.boot_ms())

    assert before == (clock.boot_ms(), clock.wall_ms(), clock.boot_id(), clock.server.boot_ms())
    assert not clock.is_real()
    assert not clock.server.is_real()


def test_advancing_moves_all_clocks_alike() -> None:
    clock = FakeClock(boot_ms=5, wall_ms=100)
    clock.advance(10)

    assert (clock.boot_ms(), clock.wall_ms(), clock.server.boot_ms(), clock.server.wall_ms()) == (
        15,
        110,
        110,
        110,
    )


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="jump_wall"):
        FakeClock().advance(-1)


def test_a_jump_of_the_calendar_moves_nothing_else() -> None:
    clock = FakeClock(boot_ms=5, wall_ms=100)
    clock.jump_wall(-50)

    assert (clock.boot_ms(), clock.wall_ms(), clock.server.wall_ms()) == (5, 50, 100)


def test_a_restart_begins_a_new_boot_and_leaves_calendar_and_server_alone() -> None:
    clock = FakeClock(boot_ms=5, wall_ms=100)
    before = clock.boot_id()
    server = clock.server.boot_id()
    clock.reboot()

    assert (clock.boot_ms(), clock.wall_ms(), clock.server.boot_ms()) == (0, 100, 100)
    assert clock.boot_id() != before
    assert clock.server.boot_id() == server
