"""The command line's entry: finds the command, runs its handler, and ends with the right exit code."""

from __future__ import annotations

import os
import sys

from interlock.cli.quick import read_call
from interlock.cli.terminal import Terminal
from interlock.errors import InterlockError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.cli.spec import Command


def run() -> None:
    """What `interlock` starts."""
    code = main(sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = code or 1
    # Everything durable is on the disk. Leaving without the interpreter's tear-down saves time, and leaving
    # the store open saves emptying its log: the next command reads it where it is.
    os._exit(code)


def main(words: list[str]) -> int:
    """Run one call; tells the exit code."""
    call = read_call(words) if "_INTERLOCK_COMPLETE" not in os.environ else None
    if call is None:
        from interlock.cli.full import run_with_click  # noqa: PLC0415 - dear, and not needed for a plain call

        return run_with_click(words)
    return run_command(*call)


def run_command(command: Command, given: dict[str, Any]) -> int:
    """Run a command's handler with its parameters; errors become their message and exit code."""
    terminal = Terminal(is_json=bool(given.pop("json", False)))
    desk = Desk(terminal, str(given.pop("as", None) or ""), str(given.pop("repo", None) or ""))
    try:
        return _find_handler(command.handler)(desk, **given)
    except InterlockError as error:
        return terminal.fail(desk.with_calendar(error))
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        terminal.note("interrupted")
        return 130


def _find_handler(name: str) -> Any:
    module, _, function = name.partition(":")
    found = __import__(f"interlock.cli.{module}", fromlist=[function])
    return getattr(found, function)


class Desk:
    """What a handler works at: the terminal, the open repository, and who is acting."""

    def __init__(self, terminal: Terminal, name: str, folder: str) -> None:
        self.terminal = terminal
        self.folder = folder
        self._name = name
        self._house: Any = None

    @property
    def house(self) -> Any:
        """The repository, opened when it is first needed."""
        if self._house is None:
            from interlock.bootstrap import open_house  # noqa: PLC0415 - `--help` needs none of it

            self._house = open_house(self.cwd, is_short_lived=True)
        return self._house

    def with_calendar(self, error: InterlockError) -> InterlockError:
        """The error with the store's instants as everybody's."""
        at = error.facts.pop("until_at", None)
        if at is not None:
            from interlock.clock import rfc3339  # noqa: PLC0415

            error.facts["until"] = rfc3339(self.house.store.wall_of(at))
        return error

    @property
    def cwd(self) -> str:
        """The folder that relative paths count from."""
        return os.path.abspath(self.folder) if self.folder else os.getcwd()

    def caller(self) -> Any:
        """What this call says about who acts."""
        from interlock.bootstrap import person_name  # noqa: PLC0415
        from interlock.operations.sessions import Caller  # noqa: PLC0415

        return Caller(
            name=self._name,
            session_text=os.environ.get("INTERLOCK_SESSION", ""),
            agent_variable=os.environ.get("INTERLOCK_AGENT", ""),
            person=person_name(),
        )

    def session(self) -> Any:
        """The session that acts; begun if there is none."""
        from interlock.operations.sessions import identify  # noqa: PLC0415

        return identify(self.house.context, self.caller()).session

    def known_session(self) -> Any:
        """The session that acts, if there is one already; nothing is begun."""
        from interlock.operations.sessions import known_session  # noqa: PLC0415

        joined = known_session(self.house.context, self.caller())
        return joined.session if joined else None
