"""A pool of open repositories for concurrent calls: each call has one to itself."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager

from landlane.app.open import open_repository
from landlane.app.store_place import ID_FILE, POINTER
from landlane.errors import LandlaneError
from landlane.git.discovery import find_checkout
from landlane.git.target_settings import settings_in_force

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from landlane.repository import Repository


_MOST_KEPT = 8


class RepositoryPool:
    """Lends open repositories of one checkout; paths are relative to its root."""

    def __init__(self, folder: str, *, caller: int | None = None) -> None:
        """`caller` 0 is for calls over the network, which have no process on this machine."""
        checkout = find_checkout(folder)
        self._checkout = checkout
        self.root = checkout.root
        self.state_folder = checkout.state_folder
        self._caller = caller
        self._idle: list[tuple[tuple[object, ...], Repository]] = []
        self._guard = threading.Lock()

    @contextmanager
    def borrow(self) -> Generator[Repository]:
        """Lend an open repository to one call at a time.

        Raises:
            LandlaneError: the repository or its store cannot be opened now.
        """
        stamp = self._stamp()
        repo = self._take(stamp) or open_repository(self.root, caller=self._caller)
        try:
            yield repo
        except LandlaneError:
            self._give_back(stamp, repo)
            raise
        except BaseException:
            repo.store.close()  # its state is unknown
            raise
        self._give_back(stamp, repo)

    def close(self) -> None:
        """Close all repositories that are not in use."""
        with self._guard:
            idle, self._idle = self._idle, []
        for _, repo in idle:
            repo.store.close()

    def _take(self, stamp: tuple[object, ...]) -> Repository | None:
        with self._guard:
            stale = [repo for known, repo in self._idle if known != stamp]
            self._idle = [one for one in self._idle if one[0] == stamp]
            found = self._idle.pop()[1] if self._idle else None
        for repo in stale:
            repo.store.close()
        return found

    def _give_back(self, stamp: tuple[object, ...], repo: Repository) -> None:
        with self._guard:
            if len(self._idle) < _MOST_KEPT:
                self._idle.append((stamp, repo))
                return
        repo.store.close()

    def _stamp(self) -> tuple[object, ...]:
        """Return what the open repository depends on; when it changes, the next call opens another."""
        state = (os.path.join(self.state_folder, name) for name in (POINTER, ID_FILE))
        return (settings_in_force(self._checkout).watched, *(_seen(path) for path in state))


def _seen(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
