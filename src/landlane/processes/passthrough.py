"""Run a command with its output passed through and the end of it kept, as for `once`."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import time
from typing import Protocol

from landlane.errors import Malformed
from landlane.processes.child import Child, ChildResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TAIL_BYTES = 65_536
_READ = 65_536
_TICK_SECONDS = 1.0
_POLL_SECONDS = 0.02
_LAST_WORDS_SECONDS = 0.2  # for what a child wrote just before its end, where its own children keep the pipe
_MOST_LAST_SECONDS = 5.0
_GRACE_SECONDS = 5.0  # between asking a group to end and killing it


def check_command(command: Sequence[str], cwd: str) -> None:
    """Refuse a command that cannot be started.

    Raises:
        Malformed: there is no such program.
    """
    program = command[0]
    path = os.path.join(cwd, program) if "/" in program else program
    if shutil.which(path) is None:
        raise Malformed(
            f"there is no program {program[:80]!r} to run",
            code="NO_PROGRAM",
            hint="check the spelling and PATH; for a line of shell: -- sh -c 'LINE'",
        )


def run_passthrough(
    command: Sequence[str],
    *,
    cwd: str,
    out: int,
    err: int,
    on_start: Callable[[int], None],
    on_tick: Callable[[], None],
) -> ChildResult:
    """Run a child whose output passes through to `out` and `err`; the end of it is kept, of both together.

    `on_start` hears the child's pid, `on_tick` is called every second. Whatever interrupts us ends the child
    with all its children; what it leaves running in the background by itself is left alone.
    """
    child = _Passing(command, cwd=cwd, has_stdin=True)
    try:
        on_start(child.pid)
        return child.run(out, err, on_tick)
    except BaseException:
        child.end_group()
        raise


class _Passing(Child):
    """A child between our caller and us."""

    def run(self, out: int, err: int, on_tick: Callable[[], None]) -> ChildResult:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with self._process.stdout as from_out, self._process.stderr as from_err:
            tail = self._pump({from_out.fileno(): out, from_err.fileno(): err}, on_tick)
        tick_at = time.monotonic() + _TICK_SECONDS
        while (exit_code := self._process.poll()) is None:  # it closed its pipes and goes on
            time.sleep(_POLL_SECONDS)
            if time.monotonic() >= tick_at:
                on_tick()
                tick_at = time.monotonic() + _TICK_SECONDS
        return ChildResult(exit_code=exit_code, stdout=tail.decode("utf-8", "replace"), stderr="")

    def _pump(self, targets: dict[int, int], on_tick: Callable[[], None]) -> bytes:
        """Pass on what comes until both pipes are closed, or the child has ended and nothing more comes."""
        tail = b""
        give_up_at = 0.0  # once it has ended: what talks on in the background is not heard for ever
        tick_at = time.monotonic() + _TICK_SECONDS
        with selectors.DefaultSelector() as selector:
            for source in targets:
                selector.register(source, selectors.EVENT_READ)
            while selector.get_map():
                has_ended = self._process.poll() is not None
                if has_ended and not give_up_at:
                    give_up_at = time.monotonic() + _MOST_LAST_SECONDS
                ready = selector.select(_LAST_WORDS_SECONDS if has_ended else _TICK_SECONDS)
                if has_ended and (not ready or time.monotonic() >= give_up_at):
                    break  # something in the background keeps the pipe open: it is not waited for
                for key, _ in ready:
                    data = os.read(key.fd, _READ)
                    if data:
                        _pass_on(targets[key.fd], data)
                        tail = (tail + data)[-_TAIL_BYTES:]
                    else:
                        selector.unregister(key.fd)
                if time.monotonic() >= tick_at:
                    on_tick()
                    tick_at = time.monotonic() + _TICK_SECONDS
        return tail

    def end_group(self) -> None:
        """Ask the child and all its children to end, and do not ask for long."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.signal(number)
            give_up_at = time.monotonic() + _GRACE_SECONDS
            while self._process.poll() is None and time.monotonic() < give_up_at:
                time.sleep(_POLL_SECONDS)


def _pass_on(target: int, data: bytes) -> None:
    """Write to where our own output goes; when nobody reads it any more, the child works on."""
    try:
        while data:
            data = data[os.write(target, data) :]
    except OSError:
        return


class CommandResult(Protocol):
    """How a command ended; a negative exit code is the signal that ended it."""

    @property
    def exit_code(self) -> int:
        """As the system tells it."""
        ...

    @property
    def stdout(self) -> str:
        """The end of what it wrote."""
        ...


class RunCommand(Protocol):
    """Runs one command, whose output goes wherever the caller wants it."""

    def __call__(self, on_start: Callable[[int], None], on_tick: Callable[[], None], /) -> CommandResult:
        """Start it, tell its pid, and come back when it has ended; `on_tick` is called now and then."""
        ...
