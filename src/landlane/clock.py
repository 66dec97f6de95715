"""Time: the boot clock that cannot be set, the wall clock for people, and durations as text.

Leases use the boot clock (it continues while the machine sleeps and never jumps); the wall clock is
only displayed. A boot clock is meaningless after a restart, so it is always read together with the boot id.
All instants and durations are whole milliseconds.
"""

from __future__ import annotations

import time

from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Clock(Protocol):
        """The clock interface that a store uses."""

        def boot_ms(self) -> int:
            """Return milliseconds since this machine started, including sleep."""
            ...

        def wall_ms(self) -> int:
            """Return milliseconds since 1970 by the machine's calendar."""
            ...

        def boot_id(self) -> str:
            """Return the id of this boot of the machine."""
            ...

        def is_real(self) -> bool:
            """Return whether time passes by itself; false for a test clock."""
            ...


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "min": 60_000}
_LONGEST_MS = 1000 * 366 * 86_400_000  # a thousand years: every instant can be stored and shown


class SystemClock:
    """The clocks of this machine."""

    __slots__ = ("_boot_id",)

    def __init__(self) -> None:
        self._boot_id = ""

    def boot_ms(self) -> int:
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def boot_id(self) -> str:
        if not self._boot_id:
            self._boot_id = read_boot_id()
        return self._boot_id

    def is_real(self) -> bool:
        return True


def awake_ms() -> int:
    """Return milliseconds that this machine was awake; workers do not run while it sleeps."""
    return time.monotonic_ns() // 1_000_000


def read_boot_id() -> str:
    """Return the kernel's id of this boot, or else the second at which the machine started."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        started = time.time() - time.clock_gettime(_BOOT_CLOCK)
        return f"started-{round(started / 60)}"


def rfc3339(wall_ms: int) -> str:
    """Return an instant as RFC 3339 text: `2026-01-31T09:30:00.250Z`."""
    seconds, milliseconds = divmod(wall_ms, 1000)
    # Beyond the year 9999 gmtime works but RFC 3339 has no form for it.
    moment = time.gmtime(min(max(seconds, 0), 253_402_300_799))
    return time.strftime("%Y-%m-%dT%H:%M:%S", moment) + f".{milliseconds:03d}Z"


def parse_rfc3339(text: str) -> int:
    """Return the instant of an RFC 3339 text in wall-clock milliseconds; the reverse of `rfc3339`."""
    from datetime import datetime  # noqa: PLC0415 - few commands need it, and it is slow to load

    return round(datetime.fromisoformat(text).timestamp() * 1000)


def parse_duration(text: str, *, what: str = "duration") -> int:
    """Return milliseconds from `45s`, `30m`, `1h30m`, `2d`, and from what we print: `30 min`, `1 min 31 s`.

    Raises:
        Malformed: the text is not a duration; a number without a unit is not, except 0.
    """
    if is_bare_number(text):
        raise needs_unit(text, what)
    total, number, unit, seen = 0.0, "", "", False
    for character in [*text.strip().lower(), "end"]:
        if character.isascii() and (character.isdigit() or character == "."):
            if unit:
                total, number, unit, seen = total + _amount(number, unit, text, what), "", "", True
            number += character
        elif character != "end":
            unit += character
    if number or unit:
        total += _amount(number, unit or ("" if seen else "s"), text, what)  # only 0 has no unit
        seen = True
    if not seen:
        raise _not_a_duration(text, what)
    return round(total)  # in floating point, 1.001 seconds are slightly less than 1001 milliseconds


def _amount(number: str, unit: str, text: str, what: str) -> float:
    try:
        amount = float(number) * _UNITS[unit.strip()]
    except (ValueError, KeyError):
        raise _not_a_duration(text, what) from None
    if amount > _LONGEST_MS:
        raise _not_a_duration(text, what)
    return amount


def is_bare_number(text: str) -> bool:
    """Return whether a duration lacks its unit: minutes or seconds? Zero needs none."""
    digits = text.strip().replace(".", "", 1)
    return digits.isascii() and digits.isdigit() and digits.strip("0") != ""


def needs_unit(text: str, what: str, hint: str = "") -> Malformed:
    """Return the error for a number without a unit."""
    number = text.strip()[:40]
    hint = hint or f"write {number}m for minutes or {number}s for seconds"
    return Malformed(f"{what} {number} needs a unit", code="BAD_DURATION", hint=hint)


def _not_a_duration(text: str, what: str) -> Malformed:
    return Malformed(
        f"{what} {text[:40] or 'nothing'} is not a duration",
        code="BAD_DURATION",
        hint="write a number and a unit, such as 45s, 30m, 1h30m or 2d",
    )


def duration_text(milliseconds: int) -> str:
    """Return a duration as text, with its two largest units."""
    if milliseconds < 1000:
        return f"{max(milliseconds, 0)}ms"
    parts: list[str] = []
    rest = milliseconds // 1000
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, rest = divmod(rest, size)
        if amount and len(parts) < 2:
            parts.append(f"{amount}{name}")
        elif parts:
            break
    return "".join(parts)
