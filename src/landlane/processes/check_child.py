"""A check as a child: nothing that it started is left when it has ended, or when this process has."""

from __future__ import annotations

import os
import select
import signal
import sys

from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reaper.py")
_GRACE_SECONDS = 15.0  # longer than the reaper itself waits


class Reaper:
    """The program that a check runs under (`reaper.py`); it ends everything once its gate is closed."""

    program_folder = os.path.dirname(_PROGRAM)

    def __init__(self) -> None:
        self.gate, self._opener = os.pipe()

    def wrap(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs a command under the reaper; it inherits `gate`."""
        return [sys.executable, "-I", "-S", _PROGRAM, str(self.gate), *command]

    def close_gate(self) -> None:
        """Close the end of the pipe that the reaper has now."""
        os.close(self.gate)

    def end(self, end_event: AbstractContextManager[int | None] | None = None) -> None:
        """Let the reaper end everything, and wait for its end if `end_event` is given."""
        if self._opener < 0:
            return
        os.close(self._opener)
        self._opener = -1
        if end_event is not None:
            with end_event as handle:
                if handle is not None:
                    select.select([handle], [], [], _GRACE_SECONDS)


class CheckChild(Child):
    """A command under a reaper."""

    def __init__(
        self, command: Sequence[str], *, cwd: str, environment: Mapping[str, str], without: Sequence[str]
    ) -> None:
        self._reaper = Reaper()
        try:
            super().__init__(
                self._reaper.wrap(command),
                cwd=cwd,
                environment=environment,
                without=without,
                inherited_files=(self._reaper.gate,),
            )
        except BaseException:
            self._reaper.end()
            raise
        finally:
            self._reaper.close_gate()

    def signal(self, number: int) -> None:
        """Send a signal to the reaper; before it is killed, it gets time to end everything."""
        if number == signal.SIGKILL:
            self._reaper.end(self.end_event())
        super().signal(number)
