"""A pool of forked processes, each with its own open connection, that set to work at the same instant."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
import traceback
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[float], float]

_START = struct.Struct("d")
_LEAD_SECONDS = 0.01  # time until all workers know of the start
_PATIENCE_SECONDS = 120
_ours: list[socket.socket] = []  # our ends of all lines; a new worker must not keep those of others open


class WorkerPool:
    """Forked workers; `make_step(number)` runs in each and returns its step for a round.

    A step gets the time at which the round began and returns a number.
    """

    def __init__(self, size: int, make_step: Callable[[int], Step]) -> None:
        self._lines: list[socket.socket] = []
        self._pids: list[int] = []
        try:
            for number in range(size):
                self._hire(number, make_step)
            for line in self._lines:
                self._hear(line)
        except BaseException:
            self.close()
            raise

    def _hire(self, number: int, make_step: Callable[[int], Step]) -> None:
        line, theirs = socket.socketpair()
        line.settimeout(_PATIENCE_SECONDS)
        pid = os.fork()
        if pid == 0:
            _serve(theirs, [*_ours, line], number, make_step)
        theirs.close()
        _ours.append(line)
        self._lines.append(line)
        self._pids.append(pid)

    def round(self, size: int | None = None) -> list[float]:
        """Let all workers, or the first so many, take one step together; their answers."""
        start = _START.pack(time.monotonic() + _LEAD_SECONDS)
        lines = self._lines[:size]
        for line in lines:
            line.sendall(start)
        return [self._hear(line) for line in lines]

    def _hear(self, line: socket.socket) -> float:
        said = line.recv(_START.size)
        if len(said) < _START.size:
            raise RuntimeError("a worker failed; its output is above")
        return _START.unpack(said)[0]

    def close(self) -> None:
        """End all workers."""
        for line in self._lines:
            _ours.remove(line)
            line.close()
        for pid in self._pids:
            os.waitpid(pid, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(
    line: socket.socket, others: list[socket.socket], number: int, make_step: Callable[[int], Step]
) -> None:
    """The life of a worker; it never returns into its parent's code."""
    try:
        for other in others:
            other.close()
        step = make_step(number)
        line.sendall(_START.pack(0.0))
        while said := line.recv(_START.size):
            (start_at,) = _START.unpack(said)
            time.sleep(max(start_at - time.monotonic(), 0.0))
            line.sendall(_START.pack(step(start_at)))
    except ConnectionError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - said aloud, and the parent hears that the line is dead
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
