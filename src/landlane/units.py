"""Durations, ages, clock times, counts, sizes and money as people read them.

Every entry point and every message uses these functions, so that one fact always looks the same. Programs
get RFC 3339 times and plain numbers instead (`clock.rfc3339`).
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_UNITS = (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", _SECOND))
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MICROS = 1_000_000  # of a dollar


def exact_duration(milliseconds: int) -> str:
    """Return a measured duration with its two largest units: `12 s`, `1 min 31 s`, `2 h 5 min`, `3 d`."""
    rounded = round(milliseconds / _SECOND) * _SECOND
    if rounded <= 0:
        return "0 s" if milliseconds <= 0 else "under 1 s"
    for (name, size), (smaller, part) in zip(_UNITS, (*_UNITS[1:], ("", 0)), strict=True):
        if rounded >= size:
            amount, rest = divmod(rounded, size)
            more = rest // part if part else 0
            return f"{amount} {name} {more} {smaller}" if more else f"{amount} {name}"
    raise AssertionError


def rough_duration(milliseconds: int) -> str:
    """Return the largest unit of a duration, for ages and distances: `12 s`, `4 min`, `2 h`."""
    for name, size in _UNITS:
        if milliseconds >= size:
            return f"{milliseconds // size} {name}"
    return "0 s"


def time_ago(then_ms: int, now_ms: int) -> str:
    """Return when something happened, in wall-clock time: `4 min ago`, `yesterday`, `12 Nov`."""
    if now_ms - then_ms < _DAY:
        return f"{rough_duration(max(now_ms - then_ms, 0))} ago"
    return day_name(then_ms, now_ms)


def time_left(milliseconds: int) -> str:
    """Return how far away a future instant is: `in 29 min`, or `now`."""
    return f"in {rough_duration(milliseconds)}" if milliseconds >= _SECOND else "now"


def running_time(milliseconds: int) -> str:
    """Return the reading of a running clock: `0:41`, `12:03`, `1:02:03`."""
    minutes, seconds = divmod(max(milliseconds, 0) // _SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def clock_time(wall_ms: int, *, has_seconds: bool = False) -> str:
    """Return the local time of day: `14:32`, or `14:32:04`."""
    return time.strftime("%H:%M:%S" if has_seconds else "%H:%M", time.localtime(wall_ms // _SECOND))


def day_and_time(wall_ms: int, now_ms: int) -> str:
    """Return a local day and time of day: `today 13:50`, `yesterday 13:50`, `12 Nov 13:50`."""
    return f"{day_name(wall_ms, now_ms)} {clock_time(wall_ms)}"


def day_name(wall_ms: int, now_ms: int) -> str:
    """Return the local day of an instant: `today`, `yesterday`, `12 Nov`, `12 Nov 2025`."""
    then, now = time.localtime(wall_ms // _SECOND), time.localtime(now_ms // _SECOND)
    if then[:3] == now[:3]:
        return "today"
    # Noon of the day before exists in every time zone, whatever its clock changes are.
    noon = time.mktime((now.tm_year, now.tm_mon, now.tm_mday - 1, 12, 0, 0, 0, 0, -1))
    if then[:3] == time.localtime(noon)[:3]:
        return "yesterday"
    year = f" {then.tm_year}" if then.tm_year != now.tm_year else ""
    return f"{then.tm_mday} {_MONTHS[then.tm_mon - 1]}{year}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 task`, `2 tasks`, `no claims`, `1,240 entries`."""
    amount = f"{number:,}" if number else "no"
    return f"{amount} {noun if number == 1 else plural or noun + 's'}"


def ordinal(number: int) -> str:
    """Return a place in line: `1st`, `2nd`, `3rd`, `11th`."""
    is_teen = number % 100 in (11, 12, 13)
    suffix = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def join_words(words: Sequence[str]) -> str:
    """Return a list as part of a sentence: `T13`, `T13 and T14`, `T22, T23 and T24`."""
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def byte_size(number: int) -> str:
    """Return a size: `812 B`, `1.3 KB`, `16 MB`."""
    size, units = float(number), ["TB", "GB", "MB", "KB", "B"]
    while round(size, 1) >= 1_000 and len(units) > 1:
        size, _ = size / 1_000, units.pop()
    has_fraction = units[-1] != "B" and round(size, 1) < 10
    return f"{size:.1f} {units[-1]}" if has_fraction else f"{size:.0f} {units[-1]}"


def money(micros: int | None, *, has_unknown: bool = False) -> str:
    """Return an amount of money: `$4.10`, `unknown`, or `≥ $4.10` for a sum with unknown parts."""
    if micros is None or (has_unknown and not micros):
        return "unknown"
    amount = f"${micros / _MICROS:,.2f}" if micros == 0 or micros >= _MICROS // 100 else "under $0.01"
    return f"≥ {amount}" if has_unknown else amount


def money_limit(micros: int) -> str:
    """Return a limit in money, without cents where it has none: `$20`, `$2.50`."""
    return f"${micros / _MICROS:,.2f}".removesuffix(".00")
