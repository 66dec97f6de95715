"""The base of the nouns of the library: a repository, seen by one session."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING

from landlane.api.hints import library_text
from landlane.api.publish import Publisher
from landlane.clock import parse_duration, rfc3339
from landlane.errors import LandlaneError
from landlane.sessions.signs_of_life import mark_file
from landlane.state.steps import record_step_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

Duration = str | float | timedelta  # such as "10m", 600 (seconds) or timedelta(minutes=10)
Since = str | datetime | timedelta  # such as "7d", "2026-01-31", a time, or a timedelta before now


class SessionView:
    """One noun of a repository, as one session sees it."""

    def __init__(self, repo: Repository, session: Session) -> None:
        self._repo = repo
        self._session = session

    def __init_subclass__(cls) -> None:
        """Let the errors of every method speak of calls and arguments, not of commands and options."""
        for name, member in vars(cls).items():
            if callable(member) and not name.startswith("_"):
                setattr(cls, name, _in_terms_of_library(member))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._repo.checkout.root} for {self._session.agent!r}>"

    def _public(self, result: Any) -> Any:
        """Return the public form of a value, or of several."""
        return Publisher(self._repo.store).publish(result)

    def _settled(self, result: Any) -> Any:
        """Return the public result of a change, after updating the plain files that show the state."""
        if self._repo.store.activity_folder:
            mark_file(self._repo.store, self._session.id)
        self._repo.settle()
        return self._public(result)

    def _step_recorder(
        self, key: str, task: str, about: Callable[[Any], str], memo: Callable[[Any], str]
    ) -> Callable[[Transaction, Any], None]:
        """Return a function that records a step under `key` in the transaction of the change itself."""

        def record(tx: Transaction, result: Any) -> None:
            if key:
                step = {"task": task, "about": about(result), "memo": memo(self._public(result))}
                record_step_in(tx, self._repo, self._session, key, **step)

        return record


def _in_terms_of_library(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except LandlaneError as error:
            error.message, error.hint = library_text(error.message), library_text(error.hint)
            error.args = (error.message,)
            raise

    return called


def milliseconds(length: Duration, what: str = "duration") -> int:
    """Return the milliseconds of a duration such as `10m`, of a number of seconds, or of a timedelta."""
    if isinstance(length, timedelta):
        return length // timedelta(milliseconds=1)
    return parse_duration(length, what=what) if isinstance(length, str) else round(length * 1000)


def period_text(bound: Since) -> str:
    """Return the begin or end of a period as text: a time, or how long before now."""
    if isinstance(bound, timedelta):
        return f"{bound // timedelta(milliseconds=1)}ms"
    return rfc3339(round(bound.timestamp() * 1000)) if isinstance(bound, datetime) else bound
