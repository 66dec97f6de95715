"""What goes on after whoever started it was killed: found by a mark in its environment, and ended."""

from __future__ import annotations

import os
import signal
import time

CHECK_MARK = "LANDLANE_BENCH"  # in the environment of every check, and of all it starts
_LIMIT_SECONDS = 5.0
_SLEEP_SECONDS = 0.01


def kill_marked(variable: str, text: str) -> int:
    """Kill every process of this user whose environment has this; tells how many there were.

    A process that is stuck in the kernel is waited for no longer than a few seconds.
    """
    mark = os.fsencode(f"{variable}={text}")
    ended: set[int] = set()
    give_up_at = time.monotonic() + _LIMIT_SECONDS
    while (found := _marked(mark)) and time.monotonic() < give_up_at:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        ended |= found
        time.sleep(_SLEEP_SECONDS)
    return len(ended)


def _marked(mark: bytes) -> set[int]:
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    return {int(name) for name in names if name.isdecimal() and int(name) != os.getpid() and _has(name, mark)}


def _has(pid: str, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # gone meanwhile, or another user's
