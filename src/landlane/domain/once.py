"""What runs once: a run of a command under a key, and how a second caller finds it."""

from __future__ import annotations

from landlane.values import value

LONGEST_COMMAND = 1000


@value
class Run:
    """One run of a command. Instants are milliseconds since 1970; `exit_code` is None until it is known."""

    key: str
    run: int
    agent: str
    session: str
    command: str
    begun_at: int
    done_at: int | None
    exit_code: int | None
    output: str


@value
class Ran:
    """The run has ended; `is_now` tells whether this call ran it or another did before."""

    run: Run
    is_now: bool


@value
class RunCrashed:
    """The process that ran it is gone without saying how it ended: it may have done all, some or nothing."""

    run: Run


@value
class StillRunning:
    """It goes on, and the caller did not want to wait any longer."""

    run: Run


def exit_status(code: int) -> int:
    """The exit code as a shell tells it: a signal is 128 and its number."""
    return 128 - code if code < 0 else code
