"""The client as a child of the worker process: its output lines, its signs of life, and ending it."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from landlane.platform.process import ProcessInfo
from landlane.processes.tree import TREE_MARK, find_members, kill_until_quiet
from landlane.processes.tree_child import WorkerChild
from landlane.sandbox.subreaper import Subreaper

_READ = 65_536
_MOST_LINE = 16 * 1024 * 1024
_MOST_STDERR = 32_000
_TICK_SECONDS = 0.2
_LAST_OUTPUT_SECONDS = 1.0  # for the last output of a client that has ended, while another holds its pipe
_CPU_FIELDS = slice(11, 15)  # behind the state: its own time and that of children it has waited for
_BUSY_SHARE = 0.02  # of one processor; an idle program with timers stays below that
_BUSY_SECONDS = 0.2
_TOLERANCE_SECONDS = 1.0
_QUIET_SECONDS = 0.05  # for so long no adopted process may appear


class ClientChild:
    """A running client. It carries the mark of our own process tree, so that it is ended with us.

    Some clients start servers with an environment of their own, without the mark. So this process adopts what
    a client leaves, and must have no other children meanwhile.
    """

    def __init__(
        self, command: Sequence[str], *, cwd: str, environment: Mapping[str, str], stdin: int
    ) -> None:
        self._adopting = Subreaper()
        out, their_out = os.pipe()
        errors, their_errors = os.pipe()
        try:
            streams = (stdin, their_out, their_errors)
            mark = os.environ.get(TREE_MARK, "")
            self._child = WorkerChild(
                command, cwd=cwd, environment=environment, streams=streams, tree_id=mark
            )
        except BaseException:
            os.close(out)
            os.close(errors)
            self._adopting.close()
            raise
        finally:
            os.close(their_out)
            os.close(their_errors)
        self._lines = {out: _OutputLines(out), errors: _OutputLines(errors)}
        self._errors = errors
        self._handle = os.pidfd_open(self._child.pid)
        self._is_dead = False
        self.stderr = bytearray()
        self.printed_at = time.monotonic()  # when it last printed something
        self.has_printed = False

    def read_lines(self, on_tick: Callable[[], bool]) -> Iterator[tuple[bool, str]]:
        """Yield its lines, each with whether it is from stderr, until it ends or `on_tick` says no."""
        with selectors.DefaultSelector() as selector:
            for descriptor in (*self._lines, self._handle):
                selector.register(descriptor, selectors.EVENT_READ)
            leave_at = float("inf")
            while len(selector.get_map()) > (0 if self._is_dead else 1) and time.monotonic() < leave_at:
                for key, _ in selector.select(_TICK_SECONDS):
                    if key.fd == self._handle:
                        selector.unregister(self._handle)
                        self._is_dead = True
                        leave_at = time.monotonic() + _LAST_OUTPUT_SECONDS
                        continue
                    lines = self._lines[key.fd].take()
                    if lines is None:
                        selector.unregister(key.fd)
                        continue
                    yield from self._keep(key.fd, lines)
                if not on_tick():
                    return
            while not self._is_dead and on_tick():  # it closed its output, and goes on
                self._is_dead = bool(selector.select(_TICK_SECONDS))

    def read_rest(self) -> Iterator[tuple[bool, str]]:
        """Yield the lines that are left in its pipes when it has ended."""
        for descriptor, lines in self._lines.items():
            while (got := lines.take()) is not None and got:
                yield from self._keep(descriptor, got)
            yield from self._keep(descriptor, lines.rest())

    def _keep(self, descriptor: int, lines: list[str]) -> Iterator[tuple[bool, str]]:
        self.printed_at = time.monotonic()
        is_error = descriptor == self._errors
        self.has_printed = self.has_printed or not is_error
        for line in lines:
            if is_error:
                self.stderr += line.encode("utf-8", "replace") + b"\n"
                del self.stderr[:-_MOST_STDERR]
            yield is_error, line

    def end(self, grace_seconds: float) -> int:
        """End it and all that it left, and return its exit code, which is negative for a signal."""
        self._child.end(grace_seconds=grace_seconds)
        exit_code = self._child.wait(_LAST_OUTPUT_SECONDS).exit_code
        adopted: set[int] = set()
        kill_until_quiet(
            self._child.tree, lambda process: _is_adopted(process, adopted), quiet_seconds=_QUIET_SECONDS
        )
        self._adopting.close()
        for pid in adopted:
            _reap(pid)
        return exit_code

    def close(self) -> None:
        """Close its pipes."""
        for lines in self._lines.values():
            lines.close()
        os.close(self._handle)

    def cpu_seconds(self) -> float:
        """Return the processor time of its processes so far, as far as they can be seen."""
        ticks = sum(_ticks(process.pid) for process in find_members(self._child.tree))
        return ticks / os.sysconf("SC_CLK_TCK")

    def has_younger(self, instant: float) -> bool:
        """Return whether a process that it started after an instant (of `time.monotonic`) is still there."""
        begun = (instant - _TOLERANCE_SECONDS + _boot_offset()) * os.sysconf("SC_CLK_TCK")
        members = find_members(self._child.tree)
        return any(process.started >= begun and process.pid != self._child.pid for process in members)


class WatchedChild(Protocol):
    """The part of `ClientChild` that signs of life are read from."""

    printed_at: float

    def cpu_seconds(self) -> float: ...
    def has_younger(self, instant: float) -> bool: ...


class LifeSigns:
    """Whether a client is alive: it prints, its processes compute, or a command that it started runs.

    After `quiet_seconds` without any of these, the client counts as stuck.
    """

    def __init__(
        self,
        child: WatchedChild,
        quiet_seconds: float,
        commands_since: Callable[[], float | None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._child = child
        self._quiet = quiet_seconds
        self._commands_since = commands_since
        self._now = now
        self._seen_at = now()
        self._cpu = 0.0
        self._cpu_at = self._seen_at

    def are_recent(self) -> bool:
        """Look for signs of life, and return whether there was one lately."""
        now = self._now()
        if self._child.printed_at > self._seen_at:
            self._seen_at = self._child.printed_at
        elif self._computes(now) or self._runs_command():
            self._seen_at = now
        return now - self._seen_at < self._quiet

    def _computes(self, now: float) -> bool:
        used, passed = self._child.cpu_seconds() - self._cpu, now - self._cpu_at
        if used < max(_BUSY_SECONDS, _BUSY_SHARE * passed):
            return False
        self._cpu, self._cpu_at = self._cpu + used, now
        return True

    def _runs_command(self) -> bool:
        since = self._commands_since()
        return since is not None and self._child.has_younger(since)


class _OutputLines:
    """Splits what comes out of a pipe into lines."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._partial = bytearray()
        os.set_blocking(descriptor, False)

    def take(self) -> list[str] | None:
        """Return the lines that are complete now; None at the end."""
        try:
            got = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return []
        if not got:
            return None
        self._partial += got
        if len(self._partial) > _MOST_LINE and b"\n" not in self._partial:
            self._partial.clear()  # too long to be a message; later lines can be read again
            return []
        *lines, rest = self._partial.split(b"\n")
        self._partial = bytearray(rest)
        return [bytes(line).decode("utf-8", "replace").rstrip("\r") for line in lines]

    def rest(self) -> list[str]:
        """Return a last line without an end."""
        left, self._partial = bytes(self._partial), bytearray()
        return [left.decode("utf-8", "replace")] if left else []

    def close(self) -> None:
        os.close(self._descriptor)


def _is_adopted(process: ProcessInfo, adopted: set[int]) -> bool:
    """Return whether a process is our child now; its id is added to `adopted`."""
    if process.parent != os.getpid():
        return False
    adopted.add(process.pid)
    return True


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _ticks(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            raw = file.read()
    except OSError:
        return 0
    return sum(int(field) for field in raw[raw.rindex(b")") + 2 :].split()[_CPU_FIELDS])


def _boot_offset() -> float:
    """Return what to add to the monotonic clock to get the clock of process start times."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
