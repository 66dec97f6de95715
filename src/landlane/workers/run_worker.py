"""The supervisor's side of the worker protocol: start the worker, read its messages, end it when it fails.

The child gets one line and its input is closed. Then its lines are judged as they come, by a conversation
with a clock. Garbage, floods, silence, a closed output and death each end as `WorkFailed` with the reason,
and in every case the whole tree of processes is ended before the answer is given.
"""

from __future__ import annotations

import os
import selectors
import signal
import time

from landlane.clock import awake_ms
from landlane.processes.tree_child import ChildPipes
from landlane.protocol.worker.conversation import Conversation, WorkerLimits, limits_of
from landlane.protocol.worker.fields import MOST_LINE_BYTES
from landlane.protocol.worker.messages import Flaw, WorkComplete, WorkFailed, failed, read_line, write_line
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from landlane.processes.child import ChildResult
    from landlane.protocol.worker.messages import Ending, Heartbeat, Progress, WorkAssignment

    class Process(Protocol):
        """A child that can be ended with all it started: `WorkerChild`, or `SandboxedChild`."""

        pid: int

        def end(self, *, grace_seconds: float = 5.0) -> int:
            """End the command and everything it started."""
            ...

        def wait(self, limit_seconds: float, on_tick: Callable[[], None] = ...) -> ChildResult:
            """Wait for the end, and bury it."""
            ...

    Streams = tuple[int, int, int]
    Start = Callable[[Streams], Process]
    Says = Heartbeat | Progress | WorkComplete | WorkFailed


_READ = 65_536
_TICK_SECONDS = 0.2
_MOST_UNHEARD_MS = 1_000  # between two judgements: what is longer was ours, such as a machine that slept
_MOST_TROUBLE = 64_000
_GRACE_SECONDS = 5.0  # between asking a tree to end and killing it
_LAST_WORDS_SECONDS = 1.0  # for a child that has ended to be seen to, and for what it said last
_POLITE = frozenset({"stopped", "late", "silent"})  # it may have been in the middle of a good sentence
_PARTING_SECONDS = 5.0  # for a worker that has said its end to end by itself


@value
class WorkerEnd:
    """How it ended: the last word, the exit code (a negative one is a signal), and the end of its stderr."""

    outcome: Ending
    exit_code: int | None
    trouble: str
    messages: int
    ended_by_us: bool  # it had to be ended: it went wrong, or did not go by itself


def run_worker(
    start: Start,
    assignment: WorkAssignment,
    *,
    limits: WorkerLimits | None = None,
    on_message: Callable[[Says], None] = lambda _: None,
    on_tick: Callable[[], str] = lambda: "",
    now: Callable[[], int] | None = None,
    grace_seconds: float = _GRACE_SECONDS,
) -> WorkerEnd:
    """Start a worker, give it its assignment, and come back with its last word when nothing of it is left.

    `start` is called with the descriptors that the child gets as input, output and errors; it may be
    `lambda streams: WorkerChild(command, cwd=folder, streams=streams)`, or `start_sandboxed` with them.
    `on_message` hears what the worker says; `on_tick` is asked a few times a second, and a reason from it
    ends the work. `now` tells milliseconds, those in which the machine was awake unless it is given; what is
    too long between two looks is no silence of the worker's. Without `limits`, those of the assignment hold.

    Raises:
        Malformed: the assignment itself cannot be said.
    """
    line = write_line(assignment)
    pipes = ChildPipes()
    try:
        child = start(pipes.theirs)
    except OSError as error:
        pipes.close()
        flaw = Flaw(code="not_started", reason=f"the worker could not be started: {error}")
        outcome = failed(assignment.assignment, flaw)
        return WorkerEnd(outcome=outcome, exit_code=None, trouble="", messages=0, ended_by_us=False)
    except BaseException:
        pipes.close()
        raise
    pipes.close_theirs()
    talk = _Talk(child, pipes, assignment, line, limits or limits_of(assignment), on_message, on_tick, now)
    try:
        flaw = talk.listen()
        was_alive = talk.end(grace_seconds)
        talk.hear_last_words(flaw)
    except BaseException:
        talk.end(grace_seconds)
        raise
    finally:
        pipes.close()
    return talk.outcome(flaw, was_alive=was_alive)


class _Talk:
    """One conversation, from the assignment to the end of the last process."""

    def __init__(
        self,
        child: Process,
        pipes: ChildPipes,
        assignment: WorkAssignment,
        line: bytes,
        limits: WorkerLimits,
        on_message: Callable[[Says], None],
        on_tick: Callable[[], str],
        now: Callable[[], int] | None,
    ) -> None:
        self._child = child
        self._pipes = pipes
        self._to_say = line
        self._limits = limits
        self._on_message = on_message
        self._on_tick = on_tick
        self._now = now or awake_ms
        begun = Conversation().receive(assignment, self._now())
        assert isinstance(begun, Conversation)
        self._said = begun
        self._judged_at = begun.received_at
        self._assignment = assignment.assignment
        self._partial = bytearray()
        self._bytes = 0
        self._trouble = bytearray()
        self._exit_code: int | None = None
        self._is_dead = False
        self._is_over = False
        self._leave_at = float("inf")  # when to wait no longer for what should come by itself

    def listen(self) -> Flaw | None:
        """Hear the worker out; tells what went wrong, if something did."""
        handle = os.pidfd_open(self._child.pid)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._pipes.to_child, selectors.EVENT_WRITE)
                selector.register(self._pipes.from_child, selectors.EVENT_READ)
                selector.register(self._pipes.errors, selectors.EVENT_READ)
                selector.register(handle, selectors.EVENT_READ)
                return self._loop(selector, handle)
        finally:
            os.close(handle)

    def _loop(self, selector: selectors.BaseSelector, handle: int) -> Flaw | None:
        tick_at = 0.0
        while True:
            flaw = self._serve_ready(selector, handle, _TICK_SECONDS)
            if flaw is not None:
                return flaw
            watched = selector.get_map()
            has_output = self._pipes.from_child in watched
            if self._is_dead and not has_output:
                return self._after_death()
            if time.monotonic() >= self._leave_at:
                return self._after_wait(has_output=has_output)
            if time.monotonic() >= tick_at:
                tick_at = time.monotonic() + _TICK_SECONDS
                flaw = self._judge(selector, handle)
                if flaw is not None:
                    return flaw

    def _serve_ready(self, selector: selectors.BaseSelector, handle: int, seconds: float) -> Flaw | None:
        for key, _ in selector.select(seconds):
            flaw = self._serve(selector, key.fd, handle)
            if flaw is not None:
                return flaw
        return None

    def _serve(self, selector: selectors.BaseSelector, ready: int, handle: int) -> Flaw | None:
        """Do what one descriptor is ready for."""
        if ready == handle:
            selector.unregister(handle)
            self._is_dead = True
            self._wait_at_most(_LAST_WORDS_SECONDS)
        elif ready == self._pipes.to_child:
            if not self._say():
                selector.unregister(ready)
                self._pipes.shut(ready)
        elif ready == self._pipes.errors:
            if not self._take_trouble():
                selector.unregister(ready)
        else:
            got = self._read(ready)
            if got is None:
                return None
            if not got:
                selector.unregister(ready)
                if self._said.end is None:
                    self._wait_at_most(_LAST_WORDS_SECONDS)
            return self._take(got)
        return None

    def _wait_at_most(self, seconds: float) -> None:
        self._leave_at = min(self._leave_at, time.monotonic() + seconds)

    def _say(self) -> bool:
        """Write what is left of the assignment; tells whether there is more to write."""
        try:
            self._to_say = self._to_say[os.write(self._pipes.to_child, self._to_say) :]
        except BlockingIOError:
            return True
        except OSError:  # it does not want to hear it; its own words will tell
            return False
        return bool(self._to_say)

    def _read(self, descriptor: int) -> bytes | None:
        try:
            return os.read(descriptor, _READ)
        except BlockingIOError:
            return None

    def _take_trouble(self) -> bool:
        got = self._read(self._pipes.errors)
        self._trouble += got or b""
        if len(self._trouble) > 2 * _MOST_TROUBLE:
            del self._trouble[:-_MOST_TROUBLE]
        return got is None or bool(got)

    def _take(self, got: bytes) -> Flaw | None:
        """Take in what it wrote, line by line."""
        self._bytes += len(got)
        if self._bytes > self._limits.most_bytes:
            return Flaw(code="flooded", reason=f"more than {self._limits.most_bytes:,} bytes of output")
        self._partial += got
        while (end := self._partial.find(b"\n")) >= 0:
            line = bytes(self._partial[:end])
            del self._partial[: end + 1]
            flaw = self._hear(line)
            if flaw is not None:
                return flaw
        if len(self._partial) > MOST_LINE_BYTES:
            return Flaw(
                code="oversized",
                reason=f"a line of more than {MOST_LINE_BYTES:,} bytes, which are the most",
            )
        return None

    def _hear(self, line: bytes) -> Flaw | None:
        message = read_line(line)
        if isinstance(message, Flaw):
            return message
        heard = self._said.receive(message, self._now())
        if isinstance(heard, Flaw):
            return heard
        self._said = heard
        flaw = heard.check_limits(self._now(), self._limits)
        if flaw is None and not self._is_over:
            self._on_message(message)  # pyright: ignore[reportArgumentType] - no assignment passes `hear` twice
        if heard.end is not None:
            self._wait_at_most(_PARTING_SECONDS)
        return flaw

    def _judge(self, selector: selectors.BaseSelector, handle: int) -> Flaw | None:
        reason = self._on_tick()
        if reason and self._said.end is None:
            return Flaw(code="stopped", reason=reason)
        self._overlook_our_absence()
        flaw = self._serve_ready(selector, handle, 0)  # what it said while the tick took its time
        if flaw is not None:
            return flaw
        self._judged_at = self._now()
        return self._said.check_limits(self._judged_at, self._limits)

    def _overlook_our_absence(self) -> None:
        """Forgive what is too long between two judgements: the worker slept too, or was not listened to.

        Only the excess: one that says nothing is ended in the end, however slow we are.
        """
        now = self._now()
        unheard = now - self._judged_at - _MOST_UNHEARD_MS
        if unheard > 0:
            self._said = self._said.excuse_silence(unheard, now)

    def _after_death(self) -> Flaw | None:
        """It has ended and its output is closed: what is wrong with that, if anything."""
        if self._partial:
            return Flaw(code="malformed", reason="its last line has no end")
        if self._said.end is None:
            return Flaw(code="died", reason="it ended before it said WorkComplete or WorkFailed")
        return None

    def _after_wait(self, *, has_output: bool) -> Flaw | None:
        """What should have come by itself did not."""
        if self._said.end is not None:
            return None
        if self._is_dead:  # something it left behind still holds its output
            return self._after_death()
        assert not has_output
        return Flaw(
            code="closed", reason="it closed its output without WorkComplete or WorkFailed, and lived on"
        )

    def end(self, grace_seconds: float) -> bool:
        """End whatever is left of the tree; tells whether the worker itself had to be ended."""
        was_alive = not self._is_dead
        self._pipes.shut(self._pipes.to_child)
        self._child.end(grace_seconds=grace_seconds if was_alive else 0)
        while (got := self._read(self._pipes.errors)) and len(self._trouble) < 2 * _MOST_TROUBLE:
            self._trouble += got
        self._exit_code = self._child.wait(_LAST_WORDS_SECONDS).exit_code
        return was_alive

    def hear_last_words(self, flaw: Flaw | None) -> None:
        """What a worker still said that was told to end: what it used, and its notes for the next."""
        if flaw is None or flaw.code not in _POLITE:
            return
        got = self._read(self._pipes.from_child)  # no more than a pipe holds: everybody who wrote is gone
        self._is_over = True
        if got:
            self._take(got)

    def outcome(self, flaw: Flaw | None, *, was_alive: bool) -> WorkerEnd:
        """The last word: the worker's own, unless something was wrong with it."""
        end, code = self._said.end, self._exit_code
        if flaw is not None and flaw.code == "died":
            flaw = Flaw(code="died", reason=f"{flaw.reason} ({_how(code)})")
        if flaw is None and isinstance(end, WorkComplete) and code and not was_alive:
            flaw = Flaw(code="died", reason=f"it said WorkComplete and then ended badly ({_how(code)})")
        if flaw is not None or end is None:
            assert flaw is not None
            notes = end.notes if end is not None and flaw.code in _POLITE else None
            end = replace(failed(self._assignment, flaw, self._said.usage), notes=notes)
        trouble = bytes(self._trouble[-_MOST_TROUBLE:]).decode("utf-8", "replace")
        return WorkerEnd(
            outcome=end,
            exit_code=code,
            trouble=trouble,
            messages=self._said.messages,
            ended_by_us=was_alive,
        )


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"by {signal.Signals(-code).name}"
        except ValueError:
            return f"by signal {-code}"
    return f"exit code {code}"
