"""Write a worker in Python: `serve` runs in the worker's process and speaks the worker protocol for you.

    from landlane.worker import Work, serve

    def handle(work: Work):
        work.progress("looking around")
        return work.complete("nothing had to be changed")

    serve(handle)

Heartbeats are sent by a thread. Standard output belongs to the protocol: what the function and its children
print there goes to standard error. An exception ends as `WorkFailed`, and so does SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from landlane.errors import Malformed
from landlane.protocol.worker.fields import MOST_LINE_BYTES
from landlane.protocol.worker.messages import (
    Ending,
    Flaw,
    Heartbeat,
    Message,
    Progress,
    Usage,
    WorkAssignment,
    WorkComplete,
    WorkFailed,
    read_line,
    write_line,
)

__all__ = ["Failure", "Usage", "Work", "WorkAssignment", "WorkComplete", "WorkFailed", "serve"]

_BEATS = 3  # heartbeats within the time that the assignment allows, so that two may be late
_LONGEST_REASON = 8_000
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Failure(Exception):
    """The work cannot be done; `code` is one of the protocol's, such as `blocked` or `rate_limited`."""

    def __init__(
        self,
        reason: str,
        *,
        code: str = "failed",
        retry: bool = True,
        retry_after_seconds: float | None = None,
        notes: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.retry = retry
        self.retry_after_seconds = retry_after_seconds
        self.notes = notes


class _Stopped(BaseException):
    """SIGTERM came."""


class Work:
    """The assignment, and the messages about it."""

    def __init__(self, assignment: WorkAssignment, send: Callable[[Message], None]) -> None:
        self.assignment = assignment
        self.usage: Usage | None = None  # set it as it becomes known: every later message carries it
        self.doing: str | None = None  # sent with every heartbeat
        self._send = send

    def progress(self, text: str, done: float | None = None) -> None:
        """Report what happened, and how much of the work is done, from 0 to 1."""
        self._send(Progress(assignment=self.assignment.assignment, text=text, done=done, usage=self.usage))

    def complete(
        self,
        summary: str,
        *,
        commit: str | None = None,
        patch: str | None = None,
        files: Sequence[str] | None = None,
        verdict: str | None = None,
        findings: Sequence[Mapping[str, Any]] | None = None,
        notes: str | None = None,
    ) -> WorkComplete:
        """Return the result for a handler to return: a commit, a patch, files in scratch, or no change.

        A reviewer gives its verdict, `approve` or `reject`, and findings.
        """
        return WorkComplete(
            assignment=self.assignment.assignment,
            summary=summary,
            commit=commit,
            patch=patch,
            files=None if files is None else tuple(files),
            verdict=verdict,
            findings=None if findings is None else tuple(findings),
            usage=self.usage,
            notes=notes,
        )

    def failed(self, failure: Failure) -> WorkFailed:
        """Return the result for a `Failure` that a handler raised."""
        return WorkFailed(
            assignment=self.assignment.assignment,
            code=failure.code,
            reason=failure.reason[:_LONGEST_REASON],
            retry=failure.retry,
            retry_after_seconds=failure.retry_after_seconds,
            usage=self.usage,
            notes=failure.notes,
        )


def serve(handler: Callable[[Work], Ending], *, beats_while: Callable[[], bool] = lambda: True) -> None:
    """Read the assignment, let the handler do it, and send its result. Call it once, in a main program.

    A heartbeat is sent only while `beats_while`, called in another thread, returns true.

    Ends the process with exit code 1 when there is no valid assignment.
    """
    out = _take_over_output()
    line = _read_assignment()
    assignment = read_line(line)
    if not isinstance(assignment, WorkAssignment):
        why = assignment.reason if isinstance(assignment, Flaw) else "it is not a WorkAssignment"
        sys.stderr.write(f"worker: the assignment cannot be understood: {why}\n")
        raise SystemExit(1)
    sender = _Sender(out)
    work = Work(assignment, sender.send)
    is_over = threading.Event()
    beating = threading.Thread(target=_beat, args=(work, sender, is_over, beats_while), daemon=True)
    try:
        signal.signal(signal.SIGTERM, _stop)
        beating.start()
        end = _do(handler, work)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends by itself at once
        is_over.set()
    sender.send_last(end, work)


def _do(handler: Callable[[Work], Ending], work: Work) -> Ending:
    try:
        end = handler(work)
    except Failure as failure:
        return work.failed(failure)
    except _Stopped:
        return work.failed(Failure("stopped by SIGTERM", code="stopped"))
    except Exception as error:  # noqa: BLE001 - any exception ends the work
        traceback.print_exc()
        return work.failed(Failure(f"{type(error).__name__}: {error}"))
    if not isinstance(end, (WorkComplete, WorkFailed)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return work.failed(Failure(f"the handler returned {type(end).__name__}, and no end", retry=False))
    return end


def _stop(_: int, __: object) -> None:
    raise _Stopped


def _take_over_output() -> int:
    """Keep standard output for the protocol; what else is printed goes to standard error."""
    sys.stdout.flush()
    out = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    return out


def _read_assignment() -> bytes:
    """Return the first line of standard input, without its end."""
    line = bytearray()
    while b"\n" not in line and len(line) <= MOST_LINE_BYTES:
        got = os.read(_STDIN, 65_536)
        if not got:
            break
        line += got
    return bytes(line.partition(b"\n")[0])


def _beat(work: Work, sender: _Sender, is_over: threading.Event, beats_while: Callable[[], bool]) -> None:
    assignment = work.assignment
    pause = max(assignment.heartbeat_seconds / _BEATS, 0.01)
    while True:
        try:
            if beats_while():
                sender.send(Heartbeat(assignment=assignment.assignment, doing=work.doing))
        except OSError:
            os.kill(os.getpid(), signal.SIGTERM)  # our output is no longer read
            return
        if is_over.wait(pause):
            return


class _Sender:
    """Sends one message at a time, and nothing after the last."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._is_closed = False

    def send(self, message: Message) -> None:
        self._write(write_line(message), is_last=False)

    def send_last(self, end: Ending, work: Work) -> None:
        """Send the result; one that the protocol cannot carry becomes a failure that says so."""
        try:
            line = write_line(end)
        except Malformed as error:
            line = write_line(
                work.failed(Failure(f"the result cannot be said: {error.message}", retry=False))
            )
        self._write(line, is_last=True)

    def _write(self, line: bytes, *, is_last: bool) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = is_last
            while line:
                line = line[os.write(self._out, line) :]
