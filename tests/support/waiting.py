"""Wait until something has happened."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

GIVE_UP_SECONDS = 60.0


def wait_until(is_so: Callable[[], object], seconds: float = GIVE_UP_SECONDS) -> None:
    """Return as soon as the condition holds; fail when it does not hold after so many seconds."""
    give_up_at = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up_at, f"not so after {seconds} s"
        time.sleep(0.01)
