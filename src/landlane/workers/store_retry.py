"""Retry steps while the store is unavailable, so that the result of an attempt is not lost."""

from __future__ import annotations

import time

from landlane.errors import StoreTransient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

MAX_OUTAGE_SECONDS = 120.0  # as long as a run continues without its store
RETRY_SECONDS = 0.5
_MAX_OUTAGE_WHEN_STOPPING = 5.0


class StoreRetry:
    """The retries of one attempt. After an outage that lasted too long, further steps are tried once."""

    def __init__(self, report: Callable[[str], None], is_stopping: Callable[[], bool]) -> None:
        self._report = report
        self._is_stopping = is_stopping
        self._unavailable_since: float | None = None
        self.has_waited = False

    def run(self, step: Callable[[], T], before_retry: Callable[[], object] = lambda: None) -> T:
        """Run a step, again while the store is unavailable; running it twice must do no harm.

        Raises:
            StoreTransient: the store has been unavailable for too long.
        """
        is_retry = False
        while True:
            try:
                if is_retry:
                    before_retry()
                result = step()
            except StoreTransient as error:
                self._wait(error)
                is_retry = True
            else:
                self._unavailable_since = None
                return result

    def _wait(self, error: StoreTransient) -> None:
        now = time.monotonic()
        if self._unavailable_since is None:
            self._unavailable_since = now
        limit = MAX_OUTAGE_SECONDS
        if self._is_stopping():
            limit = min(_MAX_OUTAGE_WHEN_STOPPING, limit)
        if now - self._unavailable_since >= limit:
            raise error
        if not self.has_waited:
            self._report(
                f"waiting for the store, to write down what was done: {error.message} [{error.code}]"
            )
        self.has_waited = True
        time.sleep(RETRY_SECONDS)
