"""Open repositories for calls that run side by side: each call has one to itself, and it is used again."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager

from landlane.app.open import open_house
from landlane.app.store_location import POINTER
from landlane.errors import LandlaneError
from landlane.git.discovery import find_checkout
from landlane.settings.model import FILE_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from landlane.app.open import House


_MOST_KEPT = 8


class Houses:
    """Gives out open houses of one checkout; paths count from its root."""

    def __init__(self, folder: str, *, caller: int | None = None) -> None:
        """`caller` 0 is for calls that come over the network: they descend from no process here."""
        checkout = find_checkout(folder)
        self.root = checkout.root
        self.state_folder = checkout.state_folder
        self._caller = caller
        self._idle: list[tuple[tuple[object, ...], House]] = []
        self._guard = threading.Lock()

    @contextmanager
    def borrow(self) -> Generator[House]:
        """An open house that nobody else uses meanwhile.

        Raises:
            LandlaneError: the repository or its store cannot be opened now.
        """
        stamp = self._stamp()
        house = self._take(stamp) or open_house(self.root, caller=self._caller)
        try:
            yield house
        except LandlaneError:
            self._give_back(stamp, house)
            raise
        except BaseException:
            house.store.close()  # who knows what state it is in
            raise
        self._give_back(stamp, house)

    def close(self) -> None:
        """Let go of all that are not in use."""
        with self._guard:
            idle, self._idle = self._idle, []
        for _, house in idle:
            house.store.close()

    def _take(self, stamp: tuple[object, ...]) -> House | None:
        with self._guard:
            stale = [house for known, house in self._idle if known != stamp]
            self._idle = [one for one in self._idle if one[0] == stamp]
            found = self._idle.pop()[1] if self._idle else None
        for house in stale:
            house.store.close()
        return found

    def _give_back(self, stamp: tuple[object, ...], house: House) -> None:
        with self._guard:
            if len(self._idle) < _MOST_KEPT:
                self._idle.append((stamp, house))
                return
        house.store.close()

    def _stamp(self) -> tuple[object, ...]:
        """What a house is opened by: when it changes, the next call opens another."""
        paths = (os.path.join(self.root, FILE_NAME), os.path.join(self.state_folder, POINTER))
        return tuple(_seen(path) for path in paths)


def _seen(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
