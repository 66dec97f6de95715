"""Run a handler; the context of a command; signals and exit codes."""

from __future__ import annotations

import os

from landlane.cli.terminal import Terminal
from landlane.errors import LandlaneError, RepositoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.cli.specs.table import Command
    from landlane.repository import Repository
    from landlane.sessions.identify import Caller
    from landlane.sessions.model import Session


def run_command(command: Command, given: dict[str, Any], call_kind: type[CommandCall] | None = None) -> int:
    """Run a command's handler with its parameters; errors become their message and exit code."""
    terminal = Terminal(is_json=bool(given.pop("json", False)))
    make_call = call_kind or CommandCall
    call = make_call(terminal, str(given.pop("as", None) or ""), str(given.pop("repo", None) or ""))
    try:
        call.begin()
        return _find_handler(command.handler)(call, **given)
    except LandlaneError as error:
        return call.fail(error)
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt as stop:
        return terminal.fail(_interrupted(stop))
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets one answer in the known form
        return terminal.fail(_unexpected(error))
    finally:
        call.settle()


class Stopped(KeyboardInterrupt):
    """A signal asks the command to end; like Ctrl-C it gives up its place in line first."""


def heed_signals() -> None:
    """For commands that wait: end on SIGTERM and SIGHUP as on Ctrl-C, and leave nothing behind."""
    import signal

    def stop(number: int, _: object) -> None:
        raise Stopped(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup has its reasons
            signal.signal(number, stop)


def _interrupted(stop: KeyboardInterrupt) -> LandlaneError:
    number = stop.args[0] if isinstance(stop, Stopped) else SIGINT
    error = LandlaneError("stopped by a signal before it was done", code="INTERRUPTED")
    error.exit_code = SIGNALLED + number
    return error


def _unexpected(error: Exception) -> LandlaneError:
    """What no other error of ours says: the system refused something, or we made a mistake."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        hint = "check the disk, and what this user may read and write"
        return LandlaneError(f"{where}{error.strerror or error}", code="SYSTEM_REFUSED", hint=hint)
    from traceback import extract_tb

    at = extract_tb(error.__traceback__)[-1]
    return LandlaneError(
        f"{type(error).__name__}: {error} ({os.path.basename(at.filename)}:{at.lineno})",
        code="UNEXPECTED",
        hint="this is a mistake in landlane: please report it; `landlane doctor` checks the state",
    )


def _find_handler(name: str) -> Callable[..., int]:
    module, _, function = name.partition(":")
    found = __import__(f"landlane.cli.{module}", fromlist=[function])
    return getattr(found, function)


class CommandCall:
    """One call of a command: the terminal, the repository, and the session that acts."""

    def __init__(self, terminal: Terminal, name: str, folder: str) -> None:
        self.terminal = terminal
        self.folder = folder
        self._name = name
        self._repo: Repository | None = None
        self._session_id = ""

    def begin(self) -> None:
        """What has to be settled before the handler begins: here, nothing."""

    @property
    def repo(self) -> Repository:
        """The repository, opened when it is first needed."""
        return self._repo if self._repo is not None else self.open()

    def open(self, *, detects_restore: bool = True) -> Repository:
        """Open the repository; see `open_repository`."""
        from landlane.app.open import open_repository

        self._repo = open_repository(self.cwd, is_short_lived=True, detects_restore=detects_restore)
        return self._repo

    def fail(self, error: LandlaneError) -> int:
        """Report an error, with instants of the store as calendar time; return the exit code."""
        return self.terminal.fail(error, self._wall_of)

    def _wall_of(self, at: int) -> int:
        return self.repo.store.wall_of(at)

    def settle(self) -> None:
        """Let the plain files beside the store follow what this command changed; the next one catches up."""
        if self._repo is not None:
            try:
                self._repo.settle()
                self._tell_notices()
            except (LandlaneError, OSError, ValueError):
                return

    def _tell_notices(self) -> None:
        """Say what the acting session must hear of; with --json `status` tells it."""
        if self._session_id and not self.terminal.is_json:
            from landlane.sessions.notices import take_notices

            for text in take_notices(self.repo, self._session_id):
                self.terminal.note(f"notice: {text}")

    @property
    def cwd(self) -> str:
        """The folder that relative paths count from."""
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
        """What this call says about who acts."""
        from landlane.app.open import person_name
        from landlane.sessions.identify import Caller

        return Caller(
            name=self._name,
            session_text=os.environ.get("LANDLANE_SESSION", ""),
            agent_variable=os.environ.get("LANDLANE_AGENT", ""),
            person=person_name(),
        )

    @property
    def given_name(self) -> str:
        """The name that the call gives with --as, if it does."""
        return self._name

    def caller_name(self) -> str:
        """The name under which this call does what needs no session."""
        caller = self.caller()
        return caller.name or caller.agent_variable or caller.person

    def session(self) -> Session:
        """The session that acts; begun if there is none."""
        from landlane.sessions.identify import identify

        session = identify(self.repo, self.caller()).session
        self._session_id = session.id
        return session

    def show_life(self) -> None:
        """Looking counts as a sign of life; whoever has no session, or a dead one, may look all the same."""
        try:
            self.known_session()
        except LandlaneError:
            return

    def known_session(self) -> Session | None:
        """The session that acts, if there is one already; nothing is begun."""
        from landlane.sessions.identify import known_session

        joined = known_session(self.repo, self.caller())
        self._session_id = joined.session.id if joined else ""
        return joined.session if joined else None


SIGNALLED = 128  # what a shell adds to the number of the signal that ended a command

SIGINT = 2
