"""Periods of calendar time, and how people write them."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from landlane.clock import parse_duration
from landlane.errors import Malformed
from landlane.values import value

ALL = "all"
DAY_MS = 86_400_000


@value
class Period:
    """From one instant up to and excluding another, in calendar milliseconds."""

    since: int
    until: int

    def has(self, at: int) -> bool:
        """Return whether an instant is in the period."""
        return self.since <= at < self.until

    def overlap_ms(self, begin: int, end: int) -> int:
        """Return how much of an interval is in the period."""
        return max(0, min(end, self.until) - max(begin, self.since))


def read_period(since: str, until: str, now: int, default: str = "7d") -> Period:
    """Parse a period: `since` is a duration before its end, a time of day, a date, an instant or `all`.

    `until` is a date or an instant; a date includes all of that day. Days begin at midnight UTC.

    Raises:
        Malformed: one of them cannot be parsed, or the period ends before it begins.
    """
    # The current instant is part of the period.
    end = read_instant(until, "--until", is_end=True) if until else now + 1
    begin = _begin(since or default, end)
    if begin >= end:
        raise Malformed(
            "the period ends before it starts",
            code="BAD_PERIOD",
            hint="use a --since before --until, or a length such as --since 7d",
        )
    return Period(since=begin, until=end)


def read_since(text: str, now: int) -> int:
    """Return the start of a period in calendar time: `2h` or `3d` before now, `14:30`, a date, or `all`.

    A time of day is local, and the last one that is not in the future.

    Raises:
        Malformed: it is none of them.
    """
    return _begin(text, now)


def _begin(text: str, end: int) -> int:
    if text == ALL:
        return 0
    if _looks_like_date(text):
        return read_instant(text, "--since")
    if ":" in text:
        return _last_time_of_day(text, end)
    try:
        return max(0, end - parse_duration(text, what="--since"))
    except Malformed:
        raise _no_instant(text, "--since") from None


def _last_time_of_day(text: str, end: int) -> int:
    """Return the last instant before the end at which local clocks showed this time."""
    try:
        wanted = time.fromisoformat(text.zfill(5))
    except ValueError:
        raise _no_instant(text, "--since") from None
    last = datetime.fromtimestamp(end / 1000)  # noqa: DTZ006 - the local time zone
    found = datetime.combine(last.date(), wanted)
    if found > last:
        found = datetime.combine(last.date() - timedelta(days=1), wanted)
    return int(found.timestamp() * 1000)


def _looks_like_date(text: str) -> bool:
    return text[4:5] == "-" and text[:4].isdecimal()


def read_instant(text: str, what: str, *, is_end: bool = False) -> int:
    """Return a date or an instant as milliseconds since 1970; without a time zone it is UTC.

    Raises:
        Malformed: it is not a date or an instant.
    """
    is_day = len(text) == len("2026-01-31")
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise _no_instant(text, what) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    at = int(found.timestamp() * 1000)
    if at < 0 or not _looks_like_date(text):
        raise _no_instant(text, what)
    return at + DAY_MS if is_end and is_day else at


def _no_instant(text: str, what: str) -> Malformed:
    message = f"{what} {text[:40]} is not a time"
    if what == "--since":
        hint = 'use 2h, 3d, 14:30, a date or "all"'
        return Malformed(message, code="BAD_PERIOD", hint=hint, given=text, example="1d")
    hint = "use a date such as 2026-01-31 or a time such as 2026-01-31T09:30:00Z"
    return Malformed(message, code="BAD_INSTANT", hint=hint)
