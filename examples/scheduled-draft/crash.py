"""Kills a process and everything that it started, at once, as a power cut would."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def tree_of(pid: int) -> list[int]:
    """A process and all below it; each is stopped first, so that it starts nothing more meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    below = [
        int(word)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for word in task.read_text().split()
    ]
    return [pid, *(one for child in below for one in tree_of(child))]


for each in tree_of(int(sys.argv[1])):
    os.kill(each, signal.SIGKILL)
