"""What every operation gets: store, settings, repository, processes, secrets; and its checkout."""

from __future__ import annotations

import os

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol, TypeVar

    from landlane.git.discovery import Checkout
    from landlane.git.numbers_in_file_names import NumbersFound
    from landlane.ids import Credentials
    from landlane.patterns.pattern import Pattern
    from landlane.platform.process_identity import Process
    from landlane.settings.model import Settings
    from landlane.store.interface import Change, Store

    T = TypeVar("T")
else:  # `typing` takes longer to load than a claim takes
    Protocol = object


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


@value
class Context:
    """The parts that `app/wiring.py` has joined.

    `before_change` runs in every transaction that finds an expired lease, `after_change` in every one that
    moved a task others wait for.
    """

    store: Store
    settings: Settings
    repository: Repository
    processes: Processes
    secrets: Secrets
    before_change: Callable[[Change], object]
    after_change: Callable[[Change, Context], None]

    def change(self, work: Callable[[Change], T], *, areas: Mapping[str, bool] | None = None) -> T:
        """One durable transaction, after what has lapsed was swept away in it.

        What follows from the moves of tasks for those that were split or are under review is part of it.
        """

        def whole_change(tx: Change) -> T:
            if tx.has_lapsed:
                self.before_change(tx)
            result = work(tx)
            if tx.touched:
                self.after_change(tx, self)
            return result

        return self.store.change(whole_change, areas=areas)


@value
class Site:
    """`here` is the checkout of the caller; `home` the repository that the state belongs to.

    Mostly they share one git directory; a workspace that is a clone has one of its own. `tell` hears what a
    watching person may want to know meanwhile.
    """

    context: Context
    here: Checkout
    home: Checkout
    tell: Callable[[str], None] = lambda _: None

    @property
    def settings(self) -> Settings:
        """The settings of the checkout one stands in."""
        return self.context.settings

    @property
    def common_dir(self) -> str:
        """The git directory that all worktrees of the repository share."""
        return self.home.common_dir

    @property
    def is_store_shared(self) -> bool:
        """Whether several clones may use the store: it is on a server, or outside this clone."""
        store = self.context.store
        path = os.path.realpath(getattr(store, "path", ""))
        return bool(getattr(store, "url", "")) or not path.startswith(os.path.realpath(self.common_dir) + "/")

    def wall_ms(self) -> int:
        """Now, by the calendar, as the store sees it."""
        store = self.context.store
        return store.wall_of(store.view(lambda reading: reading.now))
