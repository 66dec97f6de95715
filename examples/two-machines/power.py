"""Stops a process and all it started, whatever they are at, or lets them go on: `stop` or `cont`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

NUMBER = {"stop": signal.SIGSTOP, "cont": signal.SIGCONT}[sys.argv[1]]


def send(pid: int) -> None:
    """From the top down: who is stopped starts nothing more that could be missed."""
    os.kill(pid, NUMBER)
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            send(int(child))


send(int(sys.argv[2]))
