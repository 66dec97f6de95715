"""The only starter of children other than git: each in its own process group, limited in time and output."""

from __future__ import annotations

import os
import signal
import subprocess

from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_OUTPUT = 1_000_000


@value
class Ended:
    """How a child ended. A negative exit code is the signal that ended it."""

    exit_code: int
    output: str
    trouble: str


class Child:
    """A running child and its whole process group."""

    def __init__(
        self, command: Sequence[str], *, cwd: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            list(command),
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def wait(self, limit_seconds: float) -> Ended:
        """Wait for the end; a child that takes too long is killed with all its children."""
        try:
            out, err = self._process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            out, err = self._process.communicate()
        return Ended(
            exit_code=self._process.returncode,
            output=out[:_MOST_OUTPUT].decode("utf-8", "replace"),
            trouble=err[:_MOST_OUTPUT].decode("utf-8", "replace"),
        )

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; one that is gone does not mind."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return
