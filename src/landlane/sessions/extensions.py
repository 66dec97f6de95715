"""What other packages add to sessions: role names, when a lease may expire, and what follows the end.

Sessions are below roles and tasks, so they do not import them. `app/open.py` installs a function that
loads an object with the functions of those packages; tests of sessions may install another.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.store.interface import Transaction
else:  # `typing` takes longer to load than a claim takes
    Protocol = object


class SessionExtensions(Protocol):
    """The functions that sessions need from the packages above them."""

    def check_role(self, settings: Settings, name: str) -> None:
        """Refuse a role name that is not defined.

        Raises:
            Malformed: there is no such role.
        """
        ...

    def check_worker_claim(
        self, repo: Repository, session: Session, patterns: Sequence[Pattern], why: str
    ) -> None:
        """Refuse a claim of a worker on paths that its task does not name, unless it may have them.

        Raises:
            NotAllowed: it may not have them.
        """
        ...

    def keeps_lease(self, tx: Transaction, session_id: str) -> bool:
        """Return whether a silent session keeps its lease: its only task waits for a person."""
        ...

    def on_end(self, tx: Transaction, session: Session, *, is_own_will: bool) -> None:
        """Return what the session was working on, in the transaction that ends it."""
        ...


_installed: list[Callable[[], SessionExtensions]] = []


def install(load: Callable[[], SessionExtensions]) -> None:
    """Use the extensions that `load` returns in this process from now on; most commands need none."""
    _installed[:] = [load]


def installed() -> SessionExtensions:
    """Return the extensions that `app/open.py` has installed."""
    assert _installed, "no extensions: make the context with landlane.app.open.assemble_repository"
    return _installed[0]()
