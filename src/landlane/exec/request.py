"""What is asked of a run in a sandbox, how it ended, and how it heeds signals."""

from __future__ import annotations

import signal

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.sandbox.model import Guarantee as Promise

AT_TERMINAL = (signal.SIGINT, signal.SIGQUIT)  # what a terminal sends to everybody in front of it


@value
class Order:
    """What is to be run, as whom and for what. Without a task, a role that writes gets one of its own."""

    role: str
    command: tuple[str, ...]
    agent: str = ""
    task: str = ""
    out: int = 1
    has_terminal: bool = False


@value
class Executed:
    """How it ended, and what is left. `stopped_by` is the signal that asked us to end it."""

    exit_code: int
    agent: str
    backend: str
    held: tuple[Promise, ...]
    task: str = ""
    workspace: str = ""
    branch: str = ""
    head: str = ""
    rescue: str = ""
    is_over: bool = False  # its task is: nothing is left to land
    stopped_by: int = 0


class Stopping:
    """What signals ask for: before the command runs and after it, they may break in; meanwhile they wait."""

    def __init__(self, *, has_terminal: bool) -> None:
        self.number = 0
        self.is_calm = False
        self._has_terminal = has_terminal

    def note(self, number: int) -> bool:
        """Hear a signal; tells whether whatever is done now is to be broken off at once."""
        if self.is_calm and self._has_terminal and number in AT_TERMINAL:
            return False  # the command has heard it, too, and decides
        is_first = not self.number
        self.number = self.number or number
        return is_first and not self.is_calm
