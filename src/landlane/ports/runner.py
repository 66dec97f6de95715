"""What operations need to run a command: somebody who starts it, and tells how it ended."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Ending(Protocol):
    """How a command ended; a negative exit code is the signal that ended it."""

    @property
    def exit_code(self) -> int:
        """As the system tells it."""
        ...

    @property
    def output(self) -> str:
        """The end of what it wrote."""
        ...


class Runner(Protocol):
    """Runs one command, whose output goes wherever the caller wants it."""

    def __call__(self, on_start: Callable[[int], None], on_tick: Callable[[], None], /) -> Ending:
        """Start it, tell its pid, and come back when it has ended; `on_tick` is called now and then."""
        ...
