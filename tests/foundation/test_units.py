"""Durations, ages, counts, sizes and money look the same everywhere."""

from __future__ import annotations

import time

import pytest

from landlane.units import (
    byte_size,
    clock_time,
    count,
    day_and_time,
    exact_duration,
    join_words,
    money,
    money_limit,
    ordinal,
    rough_duration,
    running_time,
    time_ago,
    time_left,
)

pytestmark = pytest.mark.unit

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
NOW = 1_794_918_800_000  # 2026-11-17T12:33:20Z


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (300, "under 1 s"),
        (12 * SECOND, "12 s"),
        (59_700, "1 min"),
        (4 * MINUTE, "4 min"),
        (91 * SECOND, "1 min 31 s"),
        (2 * HOUR + 5 * MINUTE + 59 * SECOND, "2 h 5 min"),
        (2 * HOUR + 59 * SECOND, "2 h"),
        (3 * DAY, "3 d"),
        (3 * DAY + 4 * HOUR, "3 d 4 h"),
    ],
)
def test_measured_durations_have_at_most_two_units(milliseconds: int, text: str) -> None:
    assert exact_duration(milliseconds) == text


def test_ages_have_one_unit_and_are_rounded_down() -> None:
    assert [rough_duration(ms) for ms in (0, 12_400, 29 * MINUTE + 59_999, 2 * HOUR, 50 * HOUR)] == [
        "0 s",
        "12 s",
        "29 min",
        "2 h",
        "2 d",
    ]


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (-SECOND, "0 s ago"),
        (12 * SECOND, "12 s ago"),
        (4 * MINUTE, "4 min ago"),
        (20 * HOUR, "20 h ago"),
        (25 * HOUR, "yesterday"),
        (37 * HOUR, "15 Nov"),
        (400 * DAY, "13 Oct 2025"),
    ],
)
def test_the_past_is_an_age_then_a_day(age: int, text: str) -> None:
    assert time_ago(NOW - age, NOW) == text


def test_the_future_is_a_distance() -> None:
    assert [time_left(ms) for ms in (29 * MINUTE, 500, -1)] == ["in 29 min", "now", "now"]


def test_a_running_clock_has_minutes_and_seconds() -> None:
    assert [running_time(ms) for ms in (41_900, 70_000, HOUR + 2 * MINUTE + 3_000)] == [
        "0:41",
        "1:10",
        "1:02:03",
    ]


def test_clock_times_are_local_and_name_the_day_where_it_matters() -> None:
    assert (clock_time(NOW), clock_time(NOW, has_seconds=True)) == ("12:33", "12:33:20")
    days = [day_and_time(NOW - age, NOW) for age in (HOUR, 13 * HOUR, 40 * HOUR)]
    assert days == ["today 11:33", "yesterday 23:33", "15 Nov 20:33"]


def test_yesterday_holds_across_a_change_of_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    monday_noon = 1_792_926_000_000  # 2026-10-25 has 25 hours there
    assert day_and_time(monday_noon - 30 * HOUR, monday_noon).startswith("yesterday")


def test_counts_have_the_right_plural() -> None:
    counted = [count(0, "claim"), count(1, "task"), count(2, "task"), count(1240, "entry", "entries")]
    assert counted == ["no claims", "1 task", "2 tasks", "1,240 entries"]
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 22, 113)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "22nd",
        "113th",
    ]
    assert [join_words(("T1", "T2", "T3")[:n]) for n in range(4)] == ["", "T1", "T1 and T2", "T1, T2 and T3"]


def test_sizes_have_one_unit() -> None:
    sizes = [byte_size(n) for n in (0, 812, 1_300, 9_960, 999_960, 16_000_000, 2_500_000_000, 7 * 10**15)]
    assert sizes == ["0 B", "812 B", "1.3 KB", "10 KB", "1.0 MB", "16 MB", "2.5 GB", "7000 TB"]


def test_unknown_money_is_not_zero() -> None:
    assert [money(0), money(4_100_000), money(None), money(1_200_000_000)] == [
        "$0.00",
        "$4.10",
        "unknown",
        "$1,200.00",
    ]
    assert [money(4_100_000, has_unknown=True), money(0, has_unknown=True), money(200)] == [
        "≥ $4.10",
        "unknown",
        "under $0.01",
    ]
    assert [money_limit(20_000_000), money_limit(2_500_000)] == ["$20", "$2.50"]
