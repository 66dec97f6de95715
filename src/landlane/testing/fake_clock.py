"""A clock that only moves when a test moves it, for expiring leases and machine restarts."""

from __future__ import annotations

import itertools
from datetime import timedelta

_WALL_MS = 1_767_322_245_000  # 2026-01-02T02:50:45Z: far from every round number
_BOOT_MS = 86_400_000

_boots = itertools.count(1)


class FakeClock:
    """The clocks of one machine. Pass the same object to every store on this machine."""

    def __init__(self, *, boot_ms: int = _BOOT_MS, wall_ms: int = _WALL_MS) -> None:
        self._boot_ms = boot_ms
        self._wall_ms = wall_ms
        self._boot_id = _new_boot_id()
        self._server = ServerClock(wall_ms)

    def boot_ms(self) -> int:
        return self._boot_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def boot_id(self) -> str:
        return self._boot_id

    def is_real(self) -> bool:
        return False

    @property
    def server(self) -> ServerClock:
        """Return the clock of a database server; time passes equally for both."""
        return self._server

    def advance(self, by: int | timedelta) -> None:
        """Advance the clock by a timedelta, or by milliseconds."""
        ms = by // timedelta(milliseconds=1) if isinstance(by, timedelta) else by
        if ms < 0:
            raise ValueError("time does not go back; `jump_wall` moves the calendar")
        self._boot_ms += ms
        self._wall_ms += ms
        self._server.advance(ms)

    def jump_wall(self, ms: int) -> None:
        """Move this machine's wall clock forward or, with a negative number, back; no time passes."""
        self._wall_ms += ms

    def reboot(self, boot_ms: int = 0) -> None:
        """Restart the machine: the boot clock starts again under a new id. Open its stores again as well."""
        self._boot_ms = boot_ms
        self._boot_id = _new_boot_id()


class ServerClock:
    """A database server's clock: it never restarts and is independent of any machine's wall clock."""

    def __init__(self, wall_ms: int) -> None:
        self._wall_ms = wall_ms
        self._boot_id = _new_boot_id()

    def boot_ms(self) -> int:
        # A server uses its wall clock, and so does its store.
        return self._wall_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def boot_id(self) -> str:
        return self._boot_id

    def is_real(self) -> bool:
        return False

    def advance(self, ms: int) -> None:
        """Advance the clock."""
        self._wall_ms += ms


def _new_boot_id() -> str:
    return f"fake-boot-{next(_boots)}"
