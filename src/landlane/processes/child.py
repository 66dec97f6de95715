"""The only starter of children other than git: each in its own process group, limited in time and output."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time

from landlane.files import open_beside
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from typing import IO

_MAX_OUTPUT_BYTES = 1_000_000
_READ_BYTES = 65_536
_TICK_SECONDS = 0.3
_POLL_SECONDS = 0.05
_LAST_OUTPUT_SECONDS = 0.5  # after the child has ended, while another process keeps its pipe open


@value
class ChildResult:
    """How a child ended, and the end of its output. A negative exit code is the signal that ended it."""

    exit_code: int
    stdout: str
    stderr: str
    has_timed_out: bool = False


class Child:
    """A running child and its process group."""

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
        inherited_files: Sequence[int] = (),
    ) -> None:
        """Start it.

        `streams` are descriptors for its input, output and errors, which are then not read here. With
        `has_terminal` it stays in our session, as an interactive program must. `within` calls the function
        that starts it, for example in a sandboxed thread. `inherited_files` stay open in it.
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
                pass_fds=inherited_files,
            )

        self._process = start() if within is None else within(start)
        self.pid = self._process.pid

    def wait(self, limit_seconds: float, on_tick: Callable[[], None] = lambda: None) -> ChildResult:
        """Wait for its end, at most `limit_seconds`; then kill the rest of its group.

        `on_tick` is called a few times a second meanwhile.
        """
        pipes = (self._process.stdout, self._process.stderr)
        tails = [_OutputTail(pipe) for pipe in pipes if pipe is not None]
        try:
            is_late = not self._read_until_end(tails, limit_seconds, on_tick)
        finally:
            self.signal(signal.SIGKILL)  # also what it left in the background
            self._process.wait()
            for tail in tails:
                tail.close()
        stdout, stderr = [tail.text() for tail in tails] or ["", ""]
        return ChildResult(
            exit_code=self._process.returncode, stdout=stdout, stderr=stderr, has_timed_out=is_late
        )

    def _read_until_end(
        self, tails: list[_OutputTail], limit_seconds: float, on_tick: Callable[[], None]
    ) -> bool:
        """Read the output until the child has ended; return whether that was in time."""
        deadline = time.monotonic() + limit_seconds
        tick_at = time.monotonic() + _TICK_SECONDS
        end_at = deadline
        has_ended = False
        with selectors.DefaultSelector() as selector, self.end_event() as end_event:
            if end_event is not None:
                selector.register(end_event, selectors.EVENT_READ)
            for tail in tails:
                selector.register(tail.pipe, selectors.EVENT_READ, tail)
            while (now := time.monotonic()) < end_at:
                if now >= tick_at:
                    on_tick()
                    tick_at = now + _TICK_SECONDS
                if not has_ended and self._process.poll() is not None:
                    has_ended, end_at = True, min(deadline, now + _LAST_OUTPUT_SECONDS)
                    if end_event is not None:
                        selector.unregister(end_event)
                if has_ended and not selector.get_map():
                    return True
                for key, _ in selector.select(_POLL_SECONDS):
                    if key.data is not None and not key.data.read():
                        selector.unregister(key.fileobj)
        # If this process was suspended, it looks too late; the child may still have ended in time.
        return has_ended or self._process.poll() is not None

    @contextlib.contextmanager
    def end_event(self) -> Generator[int | None]:
        """Yield a descriptor that becomes readable when the child has ended."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:  # it was reaped already, or the kernel has no pidfd
            yield None
            return
        try:
            yield handle
        finally:
            os.close(handle)

    def detach(self) -> None:
        """Do not wait for it: init reaps it after this process has ended."""
        self._process.returncode = 0  # prevents a warning

    def signal(self, number: int) -> None:
        """Send a signal to the process group, if it still exists."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


class _OutputTail:
    """The last part of the output of a pipe."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.pipe = pipe
        self._kept = bytearray()
        os.set_blocking(pipe.fileno(), False)

    def read(self) -> bool:
        """Read what is available; return whether more may come."""
        try:
            data = os.read(self.pipe.fileno(), _READ_BYTES)
        except BlockingIOError:
            return True
        self._kept += data
        if len(self._kept) > 2 * _MAX_OUTPUT_BYTES:
            del self._kept[:-_MAX_OUTPUT_BYTES]
        return bool(data)

    def close(self) -> None:
        """Read what is left, within limits, and close the pipe."""
        length = -1
        while length < len(self._kept) <= _MAX_OUTPUT_BYTES:
            length = len(self._kept)
            self.read()
        self.pipe.close()

    def text(self) -> str:
        return bytes(self._kept[-_MAX_OUTPUT_BYTES:]).decode("utf-8", "replace")


def start_detached(command: Sequence[str], *, cwd: str, log: str, without: Sequence[str]) -> None:
    """Start a process that continues after this one, with its output in a file."""
    with open(log, "ab", opener=open_beside) as file:
        streams = (subprocess.DEVNULL, file.fileno(), file.fileno())
        child = Child(command, cwd=cwd, without=without, streams=streams)
    child.detach()
