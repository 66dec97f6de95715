"""The client as a child of the worker process: its output lines, its signs of life, and ending it."""

from __future__ import annotations

import os
import selectors
import time

from landlane.processes.tree import TREE_MARK, find_members, kill_until_quiet
from landlane.processes.tree_child import WorkerChild
from landlane.sandbox.subreaper import Subreaper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Protocol

    from landlane.processes.tree import ProcessInfo

    class Patient(Protocol):
        """What a pulse is felt of."""

        heard_at: float

        def cpu_seconds(self) -> float:
            """The time that its processes have used on processors."""
            ...

        def has_younger(self, instant: float) -> bool:
            """Whether a process that began after an instant is there."""
            ...


_READ = 65_536
_MOST_LINE = 16 * 1024 * 1024
_MOST_TROUBLE = 32_000
_TICK_SECONDS = 0.2
_LAST_WORDS_SECONDS = 1.0  # for what a client that has ended said last, while another holds its pipe
_CPU_FIELDS = slice(11, 15)  # behind the state: its own time and that of children it has waited for
_BUSY_SHARE = 0.02  # of one processor; an idle program with timers stays below that
_BUSY_SECONDS = 0.2
_TOLERANCE_SECONDS = 1.0
_QUIET_SECONDS = 0.05  # that long no adopted process may turn up


class ClientChild:
    """A running client. It bears the mark of the tree that we are in, so that whoever ends us ends it too.

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
        self._lines = {out: _Lines(out), errors: _Lines(errors)}
        self._errors = errors
        self._handle = os.pidfd_open(self._child.pid)
        self._is_dead = False
        self.trouble = bytearray()
        self.heard_at = time.monotonic()  # when it last printed something
        self.has_spoken = False

    def listen(self, on_tick: Callable[[], bool]) -> Iterator[tuple[bool, str]]:
        """Its lines, each with whether it is one of errors, until it has ended or `on_tick` wants no more."""
        with selectors.DefaultSelector() as selector:
            for descriptor in (*self._lines, self._handle):
                selector.register(descriptor, selectors.EVENT_READ)
            leave_at = float("inf")
            while len(selector.get_map()) > (0 if self._is_dead else 1) and time.monotonic() < leave_at:
                for key, _ in selector.select(_TICK_SECONDS):
                    if key.fd == self._handle:
                        selector.unregister(self._handle)
                        self._is_dead = True
                        leave_at = time.monotonic() + _LAST_WORDS_SECONDS
                        continue
                    lines = self._lines[key.fd].take()
                    if lines is None:
                        selector.unregister(key.fd)
                        continue
                    yield from self._heard(key.fd, lines)
                if not on_tick():
                    return
            while not self._is_dead and on_tick():  # it closed its output, and goes on
                self._is_dead = bool(selector.select(_TICK_SECONDS))

    def last_words(self) -> Iterator[tuple[bool, str]]:
        """What is left in its pipes when nobody writes any more."""
        for descriptor, lines in self._lines.items():
            while (got := lines.take()) is not None and got:
                yield from self._heard(descriptor, got)
            yield from self._heard(descriptor, lines.rest())

    def _heard(self, descriptor: int, lines: list[str]) -> Iterator[tuple[bool, str]]:
        self.heard_at = time.monotonic()
        is_trouble = descriptor == self._errors
        self.has_spoken = self.has_spoken or not is_trouble
        for line in lines:
            if is_trouble:
                self.trouble += line.encode("utf-8", "replace") + b"\n"
                del self.trouble[:-_MOST_TROUBLE]
            yield is_trouble, line

    def end(self, grace_seconds: float) -> int:
        """End it and all that it left; tells its exit code, a negative one for a signal."""
        self._child.end(grace_seconds=grace_seconds)
        exit_code = self._child.wait(_LAST_WORDS_SECONDS).exit_code
        left: set[int] = set()
        kill_until_quiet(self._child.tree, lambda one: _is_ours(one, left), quiet_seconds=_QUIET_SECONDS)
        self._adopting.close()
        for pid in left:
            _bury(pid)
        return exit_code

    def close(self) -> None:
        """Listen no more."""
        for lines in self._lines.values():
            lines.close()
        os.close(self._handle)

    def cpu_seconds(self) -> float:
        """The time that its processes have used on processors so far, as far as they can be seen."""
        ticks = sum(_ticks(one.pid) for one in find_members(self._child.tree))
        return ticks / os.sysconf("SC_CLK_TCK")

    def has_younger(self, instant: float) -> bool:
        """Whether a process that it started after an instant (of `time.monotonic`) is still there."""
        begun = (instant - _TOLERANCE_SECONDS + _boot_offset()) * os.sysconf("SC_CLK_TCK")
        members = find_members(self._child.tree)
        return any(one.started >= begun and one.pid != self._child.pid for one in members)


class Pulse:
    """Whether a client shows life: it prints, its processes compute, or a command that it started runs.

    A client that shows nothing of it for `quiet_seconds` is no longer vouched for.
    """

    def __init__(
        self,
        child: Patient,
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

    def beats(self) -> bool:
        """Whether it showed life lately; looks for it."""
        now = self._now()
        if self._child.heard_at > self._seen_at:
            self._seen_at = self._child.heard_at
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


class _Lines:
    """What comes out of a pipe, line by line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._partial = bytearray()
        os.set_blocking(descriptor, False)

    def take(self) -> list[str] | None:
        """The lines that are complete now; nothing at the end."""
        try:
            got = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return []
        if not got:
            return None
        self._partial += got
        if len(self._partial) > _MOST_LINE and b"\n" not in self._partial:
            self._partial.clear()  # nobody can read that; what follows it may be read again
            return []
        *lines, rest = self._partial.split(b"\n")
        self._partial = bytearray(rest)
        return [bytes(line).decode("utf-8", "replace").rstrip("\r") for line in lines]

    def rest(self) -> list[str]:
        """A last line without an end."""
        left, self._partial = bytes(self._partial), bytearray()
        return [left.decode("utf-8", "replace")] if left else []

    def close(self) -> None:
        os.close(self._descriptor)


def _is_ours(one: ProcessInfo, found: set[int]) -> bool:
    """Whether a process was adopted; remembered to be buried."""
    if one.parent != os.getpid():
        return False
    found.add(one.pid)
    return True


def _bury(pid: int) -> None:
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
    """What to add to the monotonic clock for the one that start times are told in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
