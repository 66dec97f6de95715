"""The only starter of children other than git: each in its own process group, limited in time and output."""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import time

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

_MOST_OUTPUT = 1_000_000
_READ = 65_536
_TICK_SECONDS = 0.3
_NAP_SECONDS = 0.05
_GRACE_SECONDS = 0.5  # for the last words of a child that has ended, while something else holds its pipe


@value
class ChildResult:
    """How a child ended, and the last it said. A negative exit code is the signal that ended it."""

    exit_code: int
    stdout: str
    stderr: str
    has_timed_out: bool = False


class Child:
    """A running child and its whole process group."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
        has_stdin: bool = False,
        streams: tuple[int, int, int] | None = None,
        has_terminal: bool = False,
        within: Callable[[Callable[[], subprocess.Popen[bytes]]], subprocess.Popen[bytes]] | None = None,
    ) -> None:
        """Start it.

        `streams` are descriptors for its input, output and errors, which are then not listened to. With
        `has_terminal` it stays in our session, as a program that talks to a person must. `within` starts it
        from somewhere else, such as from a thread in a sandbox.
        """
        inherited = {name: text for name, text in os.environ.items() if name not in without}
        own = (None if has_stdin else subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE)
        stdin, stdout, stderr = streams or own

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
                list(command),
                cwd=cwd,
                env={**inherited, "PWD": cwd, **(environment or {})},
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=not has_terminal,
            )

        self._process = start() if within is None else within(start)
        self.pid = self._process.pid

    def wait(self, limit_seconds: float, on_tick: Callable[[], None] = lambda: None) -> ChildResult:
        """Wait for the end and kill what is left of its group; a child that takes too long is killed with it.

        `on_tick` is called a few times a second meanwhile.
        """
        pipes = (self._process.stdout, self._process.stderr)
        tails = [_Tail(pipe) for pipe in pipes if pipe is not None]
        try:
            is_late = not self._listen(tails, limit_seconds, on_tick)
        finally:
            self.signal(signal.SIGKILL)  # also what it left running behind itself
            self._process.wait()
            for tail in tails:
                tail.close()
        output, trouble = [tail.text() for tail in tails] or ["", ""]
        return ChildResult(
            exit_code=self._process.returncode, stdout=output, stderr=trouble, has_timed_out=is_late
        )

    def _listen(self, tails: list[_Tail], limit_seconds: float, on_tick: Callable[[], None]) -> bool:
        """Take in what it says until it has ended; tells whether that was in time."""
        deadline = time.monotonic() + limit_seconds
        tick_at = time.monotonic() + _TICK_SECONDS
        end_at = deadline
        has_ended = False
        with selectors.DefaultSelector() as selector:
            for tail in tails:
                selector.register(tail.pipe, selectors.EVENT_READ, tail)
            while (now := time.monotonic()) < end_at:
                if now >= tick_at:
                    on_tick()
                    tick_at = now + _TICK_SECONDS
                if not has_ended and self._process.poll() is not None:
                    has_ended, end_at = True, min(deadline, now + _GRACE_SECONDS)
                if not selector.get_map():
                    if has_ended:
                        return True
                    self._nap()  # it closed its pipes and goes on
                    continue
                for key, _ in selector.select(0.05):
                    if not key.data.take():
                        selector.unregister(key.fileobj)
        # Who was held up itself looks too late: what has ended by now is not to blame for that.
        return has_ended or self._process.poll() is not None

    def _nap(self) -> None:
        """Sleep until it has ended, but not for long."""
        try:
            handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # only Linux has it
            time.sleep(_NAP_SECONDS)
            return
        try:
            select.select([handle], [], [], _NAP_SECONDS)
        finally:
            os.close(handle)

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; one that is gone does not mind."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return


class _Tail:
    """The end of what comes out of a pipe, however much it is."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.pipe = pipe
        self._kept = bytearray()
        os.set_blocking(pipe.fileno(), False)

    def take(self) -> bool:
        """Take in what is there; tells whether more may come."""
        try:
            got = os.read(self.pipe.fileno(), _READ)
        except BlockingIOError:
            return True
        self._kept += got
        if len(self._kept) > 2 * _MOST_OUTPUT:
            del self._kept[:-_MOST_OUTPUT]
        return bool(got)

    def close(self) -> None:
        """Take in what is left, and listen no more."""
        while len(self._kept) <= _MOST_OUTPUT and self._more():
            pass
        self.pipe.close()

    def _more(self) -> bool:
        before = len(self._kept)
        return self.take() and len(self._kept) > before

    def text(self) -> str:
        """What was kept."""
        return bytes(self._kept[-_MOST_OUTPUT:]).decode("utf-8", "replace")


def start_detached(command: Sequence[str], *, cwd: str, log: str, without: Sequence[str] = ()) -> int:
    """Start a process that goes on without us, its output in a file; tells its pid."""
    environment = {name: text for name, text in os.environ.items() if name not in without}
    with open(log, "ab") as file:
        process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            list(command),
            cwd=cwd,
            env={**environment, "PWD": cwd},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    process.returncode = 0  # nobody will wait for it: the system does when we are gone
    return process.pid
