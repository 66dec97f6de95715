"""Time: the boot clock that no one can set, the wall clock for people, and lengths of time as text.

Leases are counted on the boot clock (it goes on while the machine sleeps and never jumps); the wall clock is
only shown. A boot clock says nothing across a restart, so it is always read together with the boot's id.
All instants and lengths are whole milliseconds.
"""

from __future__ import annotations

import time

from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Clock(Protocol):
        """What a store needs to know of time."""

        def boot_ms(self) -> int:
            """Milliseconds since this machine started, sleep included."""
            ...

        def wall_ms(self) -> int:
            """Milliseconds since 1970 by the machine's own calendar."""
            ...

        def boot_id(self) -> str:
            """What tells this run of the machine from every other."""
            ...

        def is_real(self) -> bool:
            """Whether time passes by itself; a test's clock says no."""
            ...


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
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
    """Milliseconds that this machine was awake: while it sleeps, no worker works."""
    return time.monotonic_ns() // 1_000_000


def read_boot_id() -> str:
    """The kernel's id of this boot; where there is none, the second at which the machine started."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        started = time.time() - time.clock_gettime(_BOOT_CLOCK)
        return f"started-{round(started / 60)}"


def rfc3339(wall_ms: int) -> str:
    """An instant as people and programs read it: `2026-01-31T09:30:00.250Z`."""
    seconds, milliseconds = divmod(wall_ms, 1000)
    # Beyond the year 9999 gmtime works but RFC 3339 has no form for it.
    moment = time.gmtime(min(max(seconds, 0), 253_402_300_799))
    return time.strftime("%Y-%m-%dT%H:%M:%S", moment) + f".{milliseconds:03d}Z"


def parse_duration(text: str, *, what: str = "duration") -> int:
    """Milliseconds from `45s`, `30m`, `1h30m`, `2d`, or a plain number of seconds.

    Raises:
        Malformed: the text is not a length of time.
    """
    total, number, unit, seen = 0.0, "", "", False
    for character in [*text.strip().lower(), "end"]:
        if character.isascii() and (character.isdigit() or character == "."):
            if unit:
                total, number, unit, seen = total + _amount(number, unit, text, what), "", "", True
            number += character
        elif character != "end":
            unit += character
    if number or unit:
        total += _amount(number, unit or ("" if seen else "s"), text, what)
        seen = True
    if not seen:
        raise _not_a_duration(text, what)
    return round(total)  # 1.001 seconds are a little less than 1001 milliseconds to a computer


def _amount(number: str, unit: str, text: str, what: str) -> float:
    try:
        amount = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise _not_a_duration(text, what) from None
    if amount > _LONGEST_MS:
        raise _not_a_duration(text, what)
    return amount


def _not_a_duration(text: str, what: str) -> Malformed:
    return Malformed(
        f"{what} {text[:40]!r} is not a length of time",
        code="BAD_DURATION",
        hint="write a number and a unit, such as 45s, 30m, 1h30m or 2d",
    )


def duration_text(milliseconds: int) -> str:
    """A length of time for people: the two largest units that say something."""
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
