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

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reaper.py")
_GRACE_SECONDS = 15.0  # longer than the reaper itself waits


class CheckChild(Child):
    """A command under a reaper (`reaper.py`), which ends all of its descendants."""

    def __init__(
        self, command: Sequence[str], *, cwd: str, environment: Mapping[str, str], without: Sequence[str]
    ) -> None:
        gate, self._opener = os.pipe()
        words = [sys.executable, "-I", "-S", _PROGRAM, str(gate), *command]
        try:
            super().__init__(
                words, cwd=cwd, environment=environment, without=without, inherited_files=(gate,)
            )
        except BaseException:
            os.close(self._opener)
            raise
        finally:
            os.close(gate)

    def signal(self, number: int) -> None:
        """Send a signal to the reaper; before it is killed, it gets time to end everything."""
        if number == signal.SIGKILL and self._opener >= 0:
            os.close(self._opener)
            self._opener = -1
            self._wait_for_reaper()
        super().signal(number)

    def _wait_for_reaper(self) -> None:
        with self._end_event() as end_event:
            if end_event is not None:
                select.select([end_event], [], [], _GRACE_SECONDS)
