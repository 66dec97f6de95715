"""What `landlane exec` runs, how it ended, and the signals that ask it to stop."""

from __future__ import annotations

import signal

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.sandbox.model import Guarantee

TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGQUIT)  # a terminal sends these to its foreground process group


@value
class ExecRequest:
    """A command, the role it runs in and its task. Without a task, a role that writes gets a new one."""

    role: str
    command: tuple[str, ...]
    agent: str = ""
    task: str = ""
    stdout: int = 1
    has_terminal: bool = False


@value
class ExecResult:
    """How a command ended and what remains of it. `stopped_by` is the signal that stopped it."""

    exit_code: int
    agent: str
    backend: str
    guarantees: tuple[Guarantee, ...]
    task: str = ""
    workspace: str = ""
    branch: str = ""
    head: str = ""
    rescue: str = ""
    is_task_over: bool = False  # nothing is left to land
    stopped_by: int = 0


class StopSignal:
    """The first signal received. While `is_deferred`, signals wait until the command has ended."""

    def __init__(self, *, has_terminal: bool) -> None:
        self.number = 0
        self.is_deferred = False
        self._has_terminal = has_terminal

    def receive(self, number: int) -> bool:
        """Record a signal and return whether to interrupt at once."""
        if self.is_deferred and self._has_terminal and number in TERMINAL_SIGNALS:
            return False  # the command has received it, too, and decides
        is_first = not self.number
        self.number = self.number or number
        return is_first and not self.is_deferred
