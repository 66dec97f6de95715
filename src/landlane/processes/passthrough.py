"""Run a command, pass its output through and keep the end of it, as `once` does."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import time

from landlane.errors import Malformed
from landlane.processes.child import Child, ChildResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # Runs one command; gets the functions to call with its pid and regularly.
    RunCommand = Callable[[Callable[[int], None], Callable[[], None]], ChildResult]

_TAIL_BYTES = 65_536
_READ_BYTES = 65_536
_TICK_SECONDS = 1.0
_POLL_SECONDS = 0.02
_LAST_OUTPUT_SECONDS = 0.2  # without output after the end, while a background process keeps the pipe open
_MAX_LAST_OUTPUT_SECONDS = 5.0
# Waits until its starter lets it go on, or has ended.
_AT_GATE = 'read -r go </dev/fd/"$0" || exit 125; exec "$@"'
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
    """Run a child, pass its output through to `out` and `err`, and return the end of both together.

    `on_start` gets the child's pid before the command runs in it; `on_tick` is called every second. An
    exception here ends the child and its process group. Processes that a finished child left in the
    background continue.
    """
    gate, opener = os.pipe()
    words = ("/bin/sh", "-c", _AT_GATE, str(gate), *command)
    try:
        child = _PassthroughChild(words, cwd=cwd, has_stdin=True, inherited_files=(gate,))
        try:
            on_start(child.pid)
            os.write(opener, b"go\n")
            return child.run(out, err, on_tick)
        except BaseException:
            child.end_group()
            raise
    finally:
        os.close(gate)
        os.close(opener)


class _PassthroughChild(Child):
    """A child whose output is passed on as it comes."""

    def run(self, out: int, err: int, on_tick: Callable[[], None]) -> ChildResult:
        """Pass output on until the child has ended, and both pipes are closed or no more comes."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        tail = b""
        give_up_at = float("inf")  # set when it has ended: background processes may write for ever
        tick_at = time.monotonic() + _TICK_SECONDS
        with (
            self._process.stdout as from_out,
            self._process.stderr as from_err,
            selectors.DefaultSelector() as selector,
        ):
            selector.register(from_out, selectors.EVENT_READ, out)
            selector.register(from_err, selectors.EVENT_READ, err)
            while (exit_code := self._process.poll()) is None or selector.get_map():
                pause = _POLL_SECONDS if not selector.get_map() else _TICK_SECONDS
                ready = selector.select(pause if exit_code is None else _LAST_OUTPUT_SECONDS)
                if exit_code is not None:
                    give_up_at = min(give_up_at, time.monotonic() + _MAX_LAST_OUTPUT_SECONDS)
                    if not ready or time.monotonic() >= give_up_at:
                        break  # a background process keeps the pipe open; do not wait for it
                for key, _ in ready:
                    data = os.read(key.fd, _READ_BYTES)
                    if not data:
                        selector.unregister(key.fd)
                    _pass_on(key.data, data)
                    tail = (tail + data)[-_TAIL_BYTES:]
                if time.monotonic() >= tick_at:
                    on_tick()
                    tick_at = time.monotonic() + _TICK_SECONDS
        return ChildResult(exit_code=exit_code, stdout=tail.decode("utf-8", "replace"), stderr="")

    def end_group(self) -> None:
        """Terminate the process group, and kill it if it does not end in time."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.signal(number)
            give_up_at = time.monotonic() + _GRACE_SECONDS
            while self._process.poll() is None and time.monotonic() < give_up_at:
                time.sleep(_POLL_SECONDS)


def _pass_on(target: int, data: bytes) -> None:
    """Write to our own output; if its reader is gone, the child continues."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(target, data) :]
