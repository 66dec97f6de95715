"""The opened repository: its settings, its store and its git checkout. Every operation gets one."""

from __future__ import annotations

from landlane.errors import NotAllowed, RepositoryError
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol, TypeVar

    from landlane.git.discovery import Checkout
    from landlane.git.repository import GitRepository
    from landlane.git.target_settings import HeldSettings
    from landlane.ids import Credentials
    from landlane.platform.process import MachineProcesses
    from landlane.settings.model import Settings
    from landlane.store.interface import Store, Transaction

    T = TypeVar("T")
else:  # importing `typing` takes longer than a claim
    Protocol = object


class Secrets(Protocol):
    """The secrets of this user's sessions."""

    def load(self, agent: str) -> Credentials | None:
        """Return the secret of an agent's session, if this user may read it."""
        ...

    def save(self, credentials: Credentials) -> None:
        """Store a secret where only this user can read it."""
        ...

    def drop(self, agent: str, session: str) -> None:
        """Delete the secret of a session that has ended."""
        ...

    def is_lost(self, agent: str) -> bool:
        """Return whether the secret of an agent is missing, and not only closed to this user."""
        ...


@value
class Repository:
    """An opened repository, as `app/open.py` returns it.

    `checkout` is where the caller works, `home` the main checkout of the repository that owns the state. They
    share one git directory unless the caller works in a clone. `held` says where the settings come from.
    `report` shows progress to a person. With `is_guest` the caller is in a sandbox: commands that it brings
    are refused or run in a sandbox, too.

    Three functions connect packages that do not import each other; `app/open.py` sets them. `before_change`
    runs in every transaction that finds an expired lease, `after_change` in every one that changed a task
    others wait for, and `update_files` after commits, to bring the plain files beside the store up to date.
    """

    settings: Settings
    held: HeldSettings
    store: Store
    git: GitRepository
    checkout: Checkout
    processes: MachineProcesses
    secrets: Secrets
    before_change: Callable[[Transaction], object]
    after_change: Callable[[Transaction, Repository], None]
    update_files: Callable[[Repository, float], None]
    report: Callable[[str], None] = lambda _: None
    is_guest: bool = False

    @property
    def home(self) -> Checkout:
        """The main checkout of the repository that owns the state."""
        return self.checkout.home_checkout

    @property
    def common_dir(self) -> str:
        """The git directory that all worktrees of the repository share; empty outside git."""
        return self.checkout.home_dir

    @property
    def state_folder(self) -> str:
        """Where the state of the repository lives."""
        return self.checkout.state_folder

    def refuse_guest_command(self, what: str) -> None:
        """Refuse to store a command for a caller in a sandbox, since it would run outside.

        Raises:
            NotAllowed: the caller is in a sandbox.
        """
        if self.is_guest:
            raise not_in_sandbox(f"{what} would run outside the sandbox")

    def change(self, work: Callable[[Transaction], T], *, areas: Mapping[str, bool] | None = None) -> T:
        """Run `work` in one durable transaction and return its result.

        Expired leases end first. What follows from changed tasks, for those that were split or are under
        review, is part of the same transaction.
        """

        def change_all(tx: Transaction) -> T:
            if tx.has_lapsed:
                self.before_change(tx)
            result = work(tx)
            if tx.touched:
                self.after_change(tx, self)
            return result

        return self.store.change(change_all, areas=areas)

    def wall_ms(self) -> int:
        """Return the current calendar time according to the store."""
        return self.store.wall_of(self.store.view(lambda snapshot: snapshot.now))

    def require_git(self, report: Callable[[str], None] | None = None) -> Repository:
        """Return this repository, reporting to `report` if given.

        Raises:
            RepositoryError: the folder is not in a git repository.
        """
        if not self.common_dir:
            raise RepositoryError(
                "this needs a git repository, and there is none here",
                code="NO_GIT_HERE",
                hint="run `git init`; claims, tasks and state work without it",
            )
        return self if report is None else replace(self, report=report)

    def settle(self, *, wait_seconds: float = 0.0) -> None:
        """Bring the plain files beside the store, and the journal's ref if there is one, up to date."""
        self.update_files(self, wait_seconds)

    def close(self) -> None:
        """Update the files beside the store and close it."""
        self.settle()
        self.store.close()


def not_in_sandbox(message: str) -> NotAllowed:
    """Return the error for what a caller in a sandbox may not do."""
    return NotAllowed(
        message,
        code="NOT_IN_SANDBOX",
        hint="ask a person to do it outside: `landlane gate ask TASK --why …`, or the user who started you",
    )
