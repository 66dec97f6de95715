"""Outlasting a store that is away: what follows a worker's last word is tried until the store is back."""

from __future__ import annotations

import time

from landlane.errors import StoreTransient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

MOST_AWAY_SECONDS = 120.0  # as long as a run goes on without its store
AGAIN_SECONDS = 0.5
_HURRIED_SECONDS = 5.0  # when somebody wants the run to end


class Patience:
    """How one attempt waits for its store; one that stayed away for too long is not waited for again."""

    def __init__(self, tell: Callable[[str], None], is_hurried: Callable[[], bool]) -> None:
        self._tell = tell
        self._is_hurried = is_hurried
        self._away_since: float | None = None
        self.has_waited = False

    def outlast(self, step: Callable[[], T], before_again: Callable[[], object] = lambda: None) -> T:
        """Do a step, again and again while the store is away; it must do no harm when it was done before.

        Raises:
            StoreTransient: the store has been away for too long.
        """
        is_again = False
        while True:
            try:
                if is_again:
                    before_again()
                result = step()
            except StoreTransient as error:
                self._wait(error)
                is_again = True
            else:
                self._away_since = None
                return result

    def _wait(self, error: StoreTransient) -> None:
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
        most = min(_HURRIED_SECONDS, MOST_AWAY_SECONDS) if self._is_hurried() else MOST_AWAY_SECONDS
        if now - self._away_since >= most:
            raise error
        if not self.has_waited:
            self._tell(f"waiting for the store, to write down what was done: {error.message} [{error.code}]")
        self.has_waited = True
        time.sleep(AGAIN_SECONDS)
