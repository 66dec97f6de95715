"""The opened repository for the threads of the page, with settings as they are now."""

from __future__ import annotations

import threading
import time

from landlane.errors import LandlaneError
from landlane.git.target_settings import settings_in_force
from landlane.sessions.join import Caller, identify
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_SETTINGS_SECONDS = 2.0


class Source:
    """Gives every request the repository; one store is shared by all threads."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._guard = threading.Lock()
        self._read_at = time.monotonic()
        self.settings_error = ""  # why the settings file cannot be used; the last good settings hold

    @property
    def repo(self) -> Repository:
        """Return the repository, with the settings re-read at most every two seconds."""
        with self._guard:
            if time.monotonic() - self._read_at > _SETTINGS_SECONDS:
                self._read_at = time.monotonic()
                try:
                    held = settings_in_force(self._repo.checkout, is_person=True)
                    self._repo = replace(self._repo, settings=held.settings, held=held)
                    self.settings_error = ""
                except LandlaneError as error:
                    self.settings_error = error.message
            return self._repo

    def session_of(self, person: str) -> Session:
        """Return the session of a person who acts in the page, begun if need be."""
        return identify(self.repo, Caller(person=person)).session

    def settle(self) -> None:
        """Bring the plain files beside the store up to date; on failure the next change catches up."""
        try:
            self._repo.settle()
        except (LandlaneError, OSError, ValueError):
            return

    def close(self) -> None:
        """Close the store."""
        self._repo.close()
