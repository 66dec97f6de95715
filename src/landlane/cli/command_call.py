"""The argument of every handler: the terminal, the open repository and the acting session."""

from __future__ import annotations

import os

from landlane.app.open import open_repository, person_name
from landlane.cli.terminal import Terminal
from landlane.errors import LandlaneError, RepositoryError
from landlane.sessions.identify import Caller, identify, known_session
from landlane.sessions.notices import take_notices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session


class CommandCall:
    """One call of a command: the terminal, the repository, and the session that acts."""

    def __init__(self, terminal: Terminal, name: str, folder: str) -> None:
        self.terminal = terminal
        self.folder = folder
        self._name = name
        self._repo: Repository | None = None
        self._session_id = ""

    def begin(self) -> None:
        """Prepare the call before the handler runs; does nothing outside a sandbox."""

    @property
    def repo(self) -> Repository:
        """Return the repository, opened on first use."""
        return self._repo if self._repo is not None else self.open()

    def open(self, *, detects_restore: bool = True) -> Repository:
        """Open the repository; see `open_repository`."""
        self._repo = open_repository(self.cwd, is_short_lived=True, detects_restore=detects_restore)
        return self._repo

    def fail(self, error: LandlaneError) -> int:
        """Report an error, with instants of the store as calendar time; return the exit code."""
        return self.terminal.fail(error, self._wall_of)

    def _wall_of(self, at: int) -> int:
        return self.repo.store.wall_of(at)

    def wall_now(self) -> int:
        """Return the store's current time as calendar time."""
        store = self.repo.store
        return store.wall_of(store.view(lambda snapshot: snapshot.now))

    def settle(self) -> None:
        """Update the plain files beside the store; on failure the next command catches up."""
        if self._repo is not None:
            try:
                self._repo.settle()
                self._print_notices()
            except (LandlaneError, OSError, ValueError):
                return

    def _print_notices(self) -> None:
        """Print notices for the acting session; with --json, `status` has them."""
        if self._session_id and not self.terminal.is_json:
            for text in take_notices(self.repo, self._session_id):
                self.terminal.note(f"notice: {text}")

    @property
    def cwd(self) -> str:
        """Return the folder that relative paths are resolved against."""
        try:
            folder = os.path.abspath(self.folder) if self.folder else os.getcwd()
        except FileNotFoundError:
            folder = ""
        if not os.path.isdir(folder):
            raise RepositoryError(
                f"there is no folder {self.folder}" if self.folder else "the folder we stand in is gone",
                code="NO_FOLDER",
                hint="give --repo a folder that is there, or cd to one",
            )
        return folder

    def caller(self) -> Caller:
        """Return how this call identifies the caller."""
        return Caller(
            name=self._name,
            session_text=os.environ.get("LANDLANE_SESSION", ""),
            agent_variable=os.environ.get("LANDLANE_AGENT", ""),
            person=person_name(),
        )

    @property
    def given_name(self) -> str:
        """Return the name given with --as, if any."""
        return self._name

    def caller_name(self) -> str:
        """Return the caller's name for commands that need no session."""
        caller = self.caller()
        return caller.name or caller.agent_variable or caller.person

    def session(self) -> Session:
        """Return the acting session; begin one if there is none."""
        session = identify(self.repo, self.caller()).session
        self._session_id = session.id
        return session

    def show_life(self) -> None:
        """Renew the caller's session if it has a live one; read-only commands work without."""
        try:
            self.known_session()
        except LandlaneError:
            return

    def known_session(self) -> Session | None:
        """Return the acting session if there is one; never begin one."""
        joined = known_session(self.repo, self.caller())
        self._session_id = joined.session.id if joined else ""
        return joined.session if joined else None
