"""Facts that take long to find: a thread finds them, and pages show the last ones."""

from __future__ import annotations

import threading
import time

from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository

_LEAST_SECONDS = 10.0  # between two readings


class Slow:
    """One such fact. It is read again when the journal has grown, not more often than every few seconds."""

    def __init__(self, find: Callable[[Repository], Any]) -> None:
        self._find = find
        self._guard = threading.Lock()
        self._found: Any = None
        self._position = -1
        self._read_at = 0.0
        self._is_reading = False

    def read(self, repo: Repository, position: int) -> Any:
        """Return what was found last; None before the first time."""
        with self._guard:
            is_old = self._position != position and time.monotonic() - self._read_at > _LEAST_SECONDS
            if (self._position < 0 or is_old) and not self._is_reading:
                self._is_reading = True
                threading.Thread(target=self._read, args=(repo, position), daemon=True).start()
            return self._found

    def _read(self, repo: Repository, position: int) -> None:
        found: Any = None
        try:
            found = self._find(repo)
        except (LandlaneError, OSError):
            pass  # a busy store or no target: the next page tries again
        with self._guard:
            self._found = found if found is not None else self._found
            self._position, self._read_at, self._is_reading = position, time.monotonic(), False
