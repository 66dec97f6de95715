"""The supervisor's side of the worker protocol: start a worker, read its messages, end it when it fails.

The worker gets its assignment as one line, and then its input is closed. Each line it writes is checked by a
`Conversation`, which knows the order of messages and the time limits. Invalid output, too much output,
silence, closed output and death each become `WorkFailed` with a reason. In every case all processes of the
worker have ended before `run_worker` returns.
"""

from __future__ import annotations

import os
import selectors
import signal
import time

from landlane.clock import awake_ms
from landlane.processes.tree_child import ChildPipes
from landlane.protocol.worker.fields import MOST_LINE_BYTES
from landlane.protocol.worker.messages import (
    Conversation,
    Flaw,
    WorkComplete,
    WorkerLimits,
    WorkFailed,
    failed,
    limits_of,
    read_line,
    write_line,
)
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from landlane.processes.child import ChildResult
    from landlane.protocol.worker.messages import Ending, Heartbeat, Progress, WorkAssignment

    class WorkerProcess(Protocol):
        """A child that can be ended with everything it started: `WorkerChild` or `SandboxedChild`."""

        pid: int

        def end(self, *, grace_seconds: float = 5.0) -> int:
            """End the command and everything it started."""
            ...

        def wait(self, limit_seconds: float, on_tick: Callable[[], None] = ...) -> ChildResult:
            """Wait for the command to end."""
            ...

    Streams = tuple[int, int, int]
    Start = Callable[[Streams], WorkerProcess]
    WorkerMessage = Heartbeat | Progress | WorkComplete | WorkFailed


_READ_BYTES = 65_536
_TICK_SECONDS = 0.2
_MAX_UNREAD_MS = 1_000  # between two checks; a longer gap is not the worker's, such as machine sleep
_MAX_STDERR_BYTES = 64_000
_GRACE_SECONDS = 5.0  # between asking a tree to end and killing it
_LAST_OUTPUT_SECONDS = 1.0  # for the last output of a worker that has ended
_MAY_REPORT = frozenset({"stopped", "late", "silent"})  # its last message before the end still counts
_EXIT_SECONDS = 5.0  # for a worker to exit after its last message


@value
class WorkerEnd:
    """How a worker ended: its last message, its exit code (negative for a signal), the end of its stderr."""

    outcome: Ending
    exit_code: int | None
    stderr: str
    messages: int
    was_killed: bool  # it failed, or did not exit after its last message


def run_worker(
    start: Start,
    assignment: WorkAssignment,
    *,
    limits: WorkerLimits | None = None,
    on_message: Callable[[WorkerMessage], None] = lambda _: None,
    on_tick: Callable[[], str] = lambda: "",
    now: Callable[[], int] | None = None,
    grace_seconds: float = _GRACE_SECONDS,
) -> WorkerEnd:
    """Start a worker, send its assignment, and return its last message when all its processes have ended.

    `start` gets the descriptors for the worker's input, output and errors, such as
    `lambda streams: WorkerChild(command, cwd=folder, streams=streams)`. `on_message` gets every message.
    `on_tick` is called a few times a second; a reason from it stops the worker. `now` returns milliseconds,
    by default of the time in which the machine was awake. A long gap between two checks does not count as
    silence of the worker. `limits` default to those of the assignment.

    Raises:
        Malformed: the assignment cannot be encoded.
    """
    line = write_line(assignment)
    pipes = ChildPipes()
    try:
        child = start(pipes.theirs)
    except OSError as error:
        pipes.close()
        flaw = Flaw(code="not_started", reason=f"the worker could not be started: {error}")
        outcome = failed(assignment.assignment, flaw)
        return WorkerEnd(outcome=outcome, exit_code=None, stderr="", messages=0, was_killed=False)
    except BaseException:
        pipes.close()
        raise
    pipes.close_theirs()
    limits = limits or limits_of(assignment)
    connection = _WorkerConnection(
        child, pipes, assignment, line, limits, on_message, on_tick, now or awake_ms
    )
    try:
        flaw = connection.serve()
        was_alive = connection.end(grace_seconds)
        connection.read_last_output(flaw)
    except BaseException:
        connection.end(grace_seconds)
        raise
    finally:
        pipes.close()
    return connection.result(flaw, was_alive=was_alive)


class _WorkerConnection:
    """The pipes to one worker, from its assignment to the end of its last process."""

    def __init__(
        self,
        child: WorkerProcess,
        pipes: ChildPipes,
        assignment: WorkAssignment,
        line: bytes,
        limits: WorkerLimits,
        on_message: Callable[[WorkerMessage], None],
        on_tick: Callable[[], str],
        now: Callable[[], int],
    ) -> None:
        self._child = child
        self._pipes = pipes
        self._selector = selectors.DefaultSelector()
        self._unsent = line
        self._limits = limits
        self._on_message = on_message
        self._on_tick = on_tick
        self._now = now
        begun = Conversation().receive(assignment, self._now())
        assert isinstance(begun, Conversation)
        self._conversation = begun
        self._checked_at = begun.received_at
        self._assignment = assignment.assignment
        self._partial = bytearray()
        self._bytes = 0
        self._stderr = bytearray()
        self._exit_code: int | None = None
        self._has_exited = False
        self._is_ending = False
        self._give_up_at = float("inf")  # for output or an exit that should come by itself

    def serve(self) -> Flaw | None:
        """Send the assignment and read messages until the worker ends; return what went wrong."""
        pidfd = os.pidfd_open(self._child.pid)
        try:
            with self._selector as selector:
                selector.register(self._pipes.to_child, selectors.EVENT_WRITE)
                for readable in (self._pipes.from_child, self._pipes.errors, pidfd):
                    selector.register(readable, selectors.EVENT_READ)
                return self._loop(pidfd)
        finally:
            os.close(pidfd)

    def _loop(self, pidfd: int) -> Flaw | None:
        tick_at = 0.0
        while True:
            flaw = self._serve_ready(pidfd, _TICK_SECONDS)
            if flaw is not None:
                return flaw
            has_output = self._pipes.from_child in self._selector.get_map()
            if self._has_exited and not has_output:
                return self._check_exit()
            if time.monotonic() >= self._give_up_at:
                return self._check_timeout()
            if time.monotonic() >= tick_at:
                tick_at = time.monotonic() + _TICK_SECONDS
                flaw = self._check(pidfd)
                if flaw is not None:
                    return flaw

    def _serve_ready(self, pidfd: int, seconds: float) -> Flaw | None:
        for key, _ in self._selector.select(seconds):
            flaw = self._serve(key.fd, pidfd)
            if flaw is not None:
                return flaw
        return None

    def _serve(self, ready: int, pidfd: int) -> Flaw | None:
        """Handle one descriptor that is ready."""
        selector = self._selector
        if ready == pidfd:
            selector.unregister(pidfd)
            self._has_exited = True
            self._wait_at_most(_LAST_OUTPUT_SECONDS)
        elif ready == self._pipes.to_child:
            if not self._send():
                selector.unregister(ready)
                self._pipes.shut(ready)
        elif ready == self._pipes.errors:
            if not self._read_stderr():
                selector.unregister(ready)
        else:
            data = self._read(ready)
            if data is None:
                return None
            if not data:
                selector.unregister(ready)
                if self._conversation.end is None:
                    self._wait_at_most(_LAST_OUTPUT_SECONDS)
            return self._take_output(data)
        return None

    def _wait_at_most(self, seconds: float) -> None:
        self._give_up_at = min(self._give_up_at, time.monotonic() + seconds)

    def _send(self) -> bool:
        """Write what is left of the assignment; return whether there is more to write."""
        try:
            self._unsent = self._unsent[os.write(self._pipes.to_child, self._unsent) :]
        except BlockingIOError:
            return True
        except OSError:  # it does not read its input; its messages decide
            return False
        return bool(self._unsent)

    def _read(self, descriptor: int) -> bytes | None:
        try:
            return os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return None

    def _read_stderr(self) -> bool:
        data = self._read(self._pipes.errors)
        self._stderr += data or b""
        if len(self._stderr) > 2 * _MAX_STDERR_BYTES:
            del self._stderr[:-_MAX_STDERR_BYTES]
        return data is None or bool(data)

    def _take_output(self, data: bytes) -> Flaw | None:
        """Handle the complete lines of the output so far."""
        self._bytes += len(data)
        if self._bytes > self._limits.most_bytes:
            return Flaw(code="flooded", reason=f"more than {self._limits.most_bytes:,} bytes of output")
        self._partial += data
        while (end := self._partial.find(b"\n")) >= 0:
            line = bytes(self._partial[:end])
            del self._partial[: end + 1]
            flaw = self._take_line(line)
            if flaw is not None:
                return flaw
        if len(self._partial) > MOST_LINE_BYTES:
            return Flaw(
                code="oversized",
                reason=f"a line of more than {MOST_LINE_BYTES:,} bytes, which are the most",
            )
        return None

    def _take_line(self, line: bytes) -> Flaw | None:
        message = read_line(line)
        if isinstance(message, Flaw):
            return message
        conversation = self._conversation.receive(message, self._now())
        if isinstance(conversation, Flaw):
            return conversation
        self._conversation = conversation
        flaw = conversation.check_limits(self._now(), self._limits)
        if flaw is None and not self._is_ending:
            self._on_message(message)  # pyright: ignore[reportArgumentType] - no assignment passes `receive` twice
        if conversation.end is not None:
            self._wait_at_most(_EXIT_SECONDS)
        return flaw

    def _check(self, pidfd: int) -> Flaw | None:
        reason = self._on_tick()
        if reason and self._conversation.end is None:
            return Flaw(code="stopped", reason=reason)
        self._discount_gap()
        flaw = self._serve_ready(pidfd, 0)  # output that came during the tick
        if flaw is not None:
            return flaw
        self._checked_at = self._now()
        return self._conversation.check_limits(self._checked_at, self._limits)

    def _discount_gap(self) -> None:
        """Do not count a long gap between two checks as silence: the machine slept, or output was not read.

        Only the excess is discounted, so a silent worker is ended in any case.
        """
        now = self._now()
        unread = now - self._checked_at - _MAX_UNREAD_MS
        if unread > 0:
            self._conversation = self._conversation.excuse_silence(unread, now)

    def _check_exit(self) -> Flaw | None:
        """Return what is wrong with a worker that has exited and closed its output."""
        if self._partial:
            return Flaw(code="malformed", reason="its last line has no end")
        if self._conversation.end is None:
            return Flaw(code="died", reason="it ended before it said WorkComplete or WorkFailed")
        return None

    def _check_timeout(self) -> Flaw | None:
        """Return what is wrong when the expected output or exit did not come."""
        if self._conversation.end is not None:
            return None
        if self._has_exited:  # another process still holds its output
            return self._check_exit()
        return Flaw(
            code="closed", reason="it closed its output without WorkComplete or WorkFailed, and lived on"
        )

    def end(self, grace_seconds: float) -> bool:
        """End all processes of the worker; return whether the worker itself was still running."""
        was_alive = not self._has_exited
        self._pipes.shut(self._pipes.to_child)
        self._child.end(grace_seconds=grace_seconds if was_alive else 0)
        while (data := self._read(self._pipes.errors)) and len(self._stderr) < 2 * _MAX_STDERR_BYTES:
            self._stderr += data
        self._exit_code = self._child.wait(_LAST_OUTPUT_SECONDS).exit_code
        return was_alive

    def read_last_output(self, flaw: Flaw | None) -> None:
        """Read the last message of a worker that was stopped: its usage, and notes for the next attempt."""
        if flaw is None or flaw.code not in _MAY_REPORT:
            return
        data = self._read(self._pipes.from_child)  # at most one pipe buffer: all writers have ended
        self._is_ending = True
        if data:
            self._take_output(data)

    def result(self, flaw: Flaw | None, *, was_alive: bool) -> WorkerEnd:
        """Return how the worker ended: its own last message, unless something was wrong."""
        end, code = self._conversation.end, self._exit_code
        if flaw is not None and flaw.code == "died":
            flaw = Flaw(code="died", reason=f"{flaw.reason} ({_describe_exit(code)})")
        if flaw is None and isinstance(end, WorkComplete) and code and not was_alive:
            flaw = Flaw(
                code="died", reason=f"it said WorkComplete and then ended badly ({_describe_exit(code)})"
            )
        if flaw is not None or end is None:
            assert flaw is not None
            notes = end.notes if end is not None and flaw.code in _MAY_REPORT else None
            end = replace(failed(self._assignment, flaw, self._conversation.usage), notes=notes)
        return WorkerEnd(
            outcome=end,
            exit_code=code,
            stderr=bytes(self._stderr[-_MAX_STDERR_BYTES:]).decode("utf-8", "replace"),
            messages=self._conversation.messages,
            was_killed=was_alive,
        )


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"by {signal.Signals(-code).name}"
        except ValueError:
            return f"by signal {-code}"
    return f"exit code {code}"
