"""Run the handler of a command, with the terminal, the open repository and the acting session."""

from __future__ import annotations

import os

from landlane.app.open import open_repository, person_name
from landlane.cli.improve_hint import improve_hint
from landlane.cli.parse import call_text, parse
from landlane.cli.terminal import Terminal
from landlane.cli.typed_call import TypedCall
from landlane.error_json import as_landlane_error
from landlane.errors import LandlaneError, RepositoryError
from landlane.sessions.join import Caller, identify, known_session
from landlane.sessions.notices import take_notices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.cli.specs.model import Command
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_SIGNALLED = 128  # a shell reports 128 plus the signal number
_SIGINT = 2


class CommandCall:
    """One call of a command: the terminal, the repository, and the session that acts."""

    is_sandboxed = False  # whether the caller is in a sandbox; this process is not

    def __init__(self, terminal: Terminal, name: str, folder: str) -> None:
        self.terminal = terminal
        self.folder = folder
        self.name = name  # as given with --as
        self.typed: TypedCall | None = None  # for hints that repeat the call
        self._repo: Repository | None = None
        self._session_id = ""

    def authenticate(self) -> None:
        """Check who calls before the handler runs; outside a sandbox each handler does that itself."""

    @property
    def repo(self) -> Repository:
        """Return the repository, opened on first use."""
        return self._repo if self._repo is not None else self.open()

    def open(self, *, detects_restore: bool = True) -> Repository:
        """Open the repository; see `open_repository`."""
        caller = self.caller()
        is_agent = bool(caller.name or caller.session_text or caller.agent_variable)
        repo = open_repository(
            self.cwd, is_short_lived=True, detects_restore=detects_restore, is_person=not is_agent
        )
        self._repo = repo = find_handler("person:own_settings")(repo, caller) if repo.held.is_own else repo
        if repo.held.trouble and not self.terminal.is_json:
            self.terminal.note(f"{repo.held.remark}: landlane doctor")
        return repo

    def command_text(self, *words: str) -> str:
        """Return a command to paste, with --as and --repo as they were typed."""
        return call_text([*words, *self._common_words()])

    def _common_words(self) -> tuple[str, ...]:
        acting = ("--as", self.name) if self.name else ()
        return (*acting, "--repo", self.folder) if self.folder else acting

    def run(self, *words: str) -> int:
        """Run another command for the same caller, in the same folder; return its exit code."""
        typed = parse([*words, *self._common_words()])
        return run_command(typed.command, typed.given, type(self))

    def remember(self, command: Command, given: Mapping[str, Any]) -> None:
        """Remember what was typed, for hints that repeat it."""
        self.typed = TypedCall(command, given, self._common_words())

    def fail(self, error: LandlaneError) -> int:
        """Report an error, with instants of the store as calendar time; return the exit code."""
        self.improve(error)
        # Not `self.repo.store.wall_of` itself: few errors have an instant, and the store may not be open.
        return self.terminal.fail(error, lambda at: self.repo.store.wall_of(at))  # noqa: PLW0108

    def improve(self, error: LandlaneError) -> None:
        """Make the hint of an error a call that can be pasted, where the typed call shows which one."""
        if self.typed is not None:
            error.hint = improve_hint(self.typed, error, self.terminal)

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
                f"no folder {self.folder}" if self.folder else "the current directory no longer exists",
                code="NO_FOLDER",
                hint="give --repo a folder that exists" if self.folder else "cd ~",
            )
        return folder

    def caller(self) -> Caller:
        """Return how this call identifies the caller."""
        return Caller(
            name=self.name,
            session_text=os.environ.get("LANDLANE_SESSION", ""),
            agent_variable=os.environ.get("LANDLANE_AGENT", ""),
            person=person_name(),
        )

    def caller_name(self) -> str:
        """Return the caller's name for commands that need no session."""
        caller = self.caller()
        return caller.name or caller.agent_variable or caller.person

    def session(self) -> Session:
        """Return the acting session; begin one if there is none."""
        session = identify(self.repo, self.caller()).session
        self._session_id = session.id
        return session

    def renew_session(self) -> None:
        """Renew the lease of the caller's session, if it has a live one; read-only commands work without."""
        try:
            self.known_session()
        except LandlaneError:
            return

    def known_session(self) -> Session | None:
        """Return the acting session if there is one; never begin one."""
        joined = known_session(self.repo, self.caller())
        self._session_id = joined.session.id if joined else ""
        return joined.session if joined else None


def run_command(command: Command, given: dict[str, Any], make_call: type[CommandCall] = CommandCall) -> int:
    """Run a command's handler with its parameters; turn errors into a message and an exit code."""
    terminal = Terminal(
        is_json=bool(given.pop("json", False)),
        is_verbose=bool(given.pop("verbose", False)),
        is_quiet=bool(given.pop("quiet", False)),
        agent=(agent := str(given.pop("as", None) or "")),
        folder=(folder := str(given.pop("repo", None) or "")),
    )
    call = make_call(terminal, agent, folder)
    call.remember(command, given)
    try:
        call.authenticate()
        return find_handler(command.handler)(call, **given)
    except LandlaneError as error:
        return call.fail(error)
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt as stop:
        return terminal.fail(_interrupted(stop))
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets one answer in the known form
        return terminal.fail(as_landlane_error(error))
    finally:
        call.settle()


class Stopped(KeyboardInterrupt):
    """A signal ended the command. It is handled like Ctrl-C, so a waiting command leaves the queue first."""


def stop_on_signals() -> None:
    """End on SIGTERM and SIGHUP as on Ctrl-C; for commands that wait and must clean up."""
    import signal  # noqa: PLC0415 - few commands wait

    def stop(number: int, _: object) -> None:
        raise Stopped(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # ignored on purpose, as by nohup
            signal.signal(number, stop)


def _interrupted(stop: KeyboardInterrupt) -> LandlaneError:
    number = stop.args[0] if isinstance(stop, Stopped) else _SIGINT
    error = LandlaneError("stopped by a signal before it was done", code="INTERRUPTED")
    error.exit_code = _SIGNALLED + number
    return error


def find_handler(name: str) -> Callable[..., Any]:
    """Return a handler or another function, `module:function`, loading its module only now."""
    module, _, function = name.partition(":")
    return getattr(__import__(f"landlane.cli.{module}", fromlist=[function]), function)
