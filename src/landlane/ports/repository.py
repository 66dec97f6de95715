"""What operations need to know of the repository and of the processes on this machine."""

from __future__ import annotations

from typing import Any, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.domain.agents import Credentials, Process
    from landlane.domain.numbers import NumbersFound
    from landlane.domain.patterns import Pattern


class Repository(Protocol):
    """The checkout that a caller stands in."""

    @property
    def root(self) -> str:
        """The top folder of the checkout."""
        ...

    def pattern(self, text: str, *, is_literal: bool = False) -> Pattern:
        """The pattern that a text means here."""
        ...

    def pattern_of(self, text: str, kind: str) -> Pattern:
        """A pattern in its canonical form, as stored or as written in the settings, from the root."""
        ...

    def commit_id(self, text: str) -> str:
        """The full id of a commit that exists."""
        ...

    def last_change(self, path: str) -> dict[str, Any]:
        """Who last committed a change to a path, as its trailers tell; empty when nobody did."""
        ...

    def numbers_in(self, path: str) -> NumbersFound:
        """The numbers that stand where `path` has its `{n}`: in branches, and in working trees."""
        ...


class Processes(Protocol):
    """The processes of this machine, told apart from every other run."""

    @property
    def machine(self) -> str:
        """A name for this machine that differs from every other machine's."""
        ...

    def current(self) -> Process:
        """This process."""
        ...

    def identify(self, pid: int) -> Process:
        """The process that has this id now."""
        ...

    def ancestry(self) -> list[Process]:
        """This process's parents, the nearest first."""
        ...

    def is_gone(self, process: Process) -> bool:
        """Whether a process has provably ended; not knowing means no."""
        ...

    def is_port_free(self, port: int) -> bool:
        """Whether a server could bind this port of this machine now."""
        ...


class Secrets(Protocol):
    """Where the secrets of this user's sessions are kept."""

    def load(self, agent: str) -> Credentials | None:
        """The secret of an agent's session, if this user may read it."""
        ...

    def save(self, credentials: Credentials) -> None:
        """Keep a secret where only this user can read it."""
        ...

    def drop(self, agent: str, session: str) -> None:
        """Forget the secret of a session that is over."""
        ...
