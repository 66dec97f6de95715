"""The base of the nouns of the library: a repository, seen by one session."""

from __future__ import annotations

from landlane.clock import parse_duration
from landlane.state.steps import record_step_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

    T = TypeVar("T")


class SessionView:
    """One noun of a repository, as one session sees it."""

    def __init__(self, repo: Repository, session: Session) -> None:
        self._repo = repo
        self._session = session

    def _settled(self, result: T) -> T:
        """Return the result of a change, after updating the plain files that show the state."""
        self._repo.settle()
        return result

    def _step_recorder(
        self, key: str, task: str, about: Callable[[T], str], memo: Callable[[T], str]
    ) -> Callable[[Transaction, T], None]:
        """Return a function that records a step under `key` in the transaction of the change itself."""

        def record(tx: Transaction, result: T) -> None:
            if key:
                step = {"task": task, "about": about(result), "memo": memo(result)}
                record_step_in(tx, self._repo, self._session, key, **step)

        return record


def milliseconds(length: str | float, what: str = "duration") -> int:
    """Return the milliseconds of a duration such as `10m`, or of a number of seconds."""
    return parse_duration(length, what=what) if isinstance(length, str) else round(length * 1000)
