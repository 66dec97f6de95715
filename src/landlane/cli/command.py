"""Run the handler of a command; signals and exit codes."""

from __future__ import annotations

import os

from landlane.cli.terminal import Terminal
from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.cli.specs.table import Command


def run_command(command: Command, given: dict[str, Any], call_kind: type[CommandCall] | None = None) -> int:
    """Run a command's handler with its parameters; turn errors into a message and an exit code."""
    terminal = Terminal(is_json=bool(given.pop("json", False)))
    from landlane.cli.command_call import CommandCall  # noqa: PLC0415 - help does not need it

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
    """A signal ended the command; like Ctrl-C, it leaves the wait queue first."""


def heed_signals() -> None:
    """End on SIGTERM and SIGHUP as on Ctrl-C, for commands that wait and must clean up."""
    import signal  # noqa: PLC0415 - few commands wait

    def stop(number: int, _: object) -> None:
        raise Stopped(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # ignored on purpose, as by nohup
            signal.signal(number, stop)


def _interrupted(stop: KeyboardInterrupt) -> LandlaneError:
    number = stop.args[0] if isinstance(stop, Stopped) else SIGINT
    error = LandlaneError("stopped by a signal before it was done", code="INTERRUPTED")
    error.exit_code = SIGNALLED + number
    return error


def _unexpected(error: Exception) -> LandlaneError:
    """Return the error for an unexpected exception: a system error or a bug."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        hint = "check the disk, and what this user may read and write"
        return LandlaneError(f"{where}{error.strerror or error}", code="SYSTEM_REFUSED", hint=hint)
    raised_at = error.__traceback__
    assert raised_at is not None
    while raised_at.tb_next is not None:
        raised_at = raised_at.tb_next
    file = os.path.basename(raised_at.tb_frame.f_code.co_filename)
    return LandlaneError(
        f"{type(error).__name__}: {error} ({file}:{raised_at.tb_lineno})",
        code="UNEXPECTED",
        hint="this is a mistake in landlane: please report it; `landlane doctor` checks the state",
    )


def _find_handler(name: str) -> Callable[..., int]:
    module, _, function = name.partition(":")
    found = __import__(f"landlane.cli.{module}", fromlist=[function])
    return getattr(found, function)


SIGNALLED = 128  # a shell reports 128 plus the signal number

SIGINT = 2
