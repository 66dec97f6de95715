"""Programs that only tests use: the system's own, or those that `scripts/tools.sh` put into .tools."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PROGRAMS = {
    "bubblewrap": "usr/bin/bwrap",
    "zsh": "bin/zsh",
    "fish": "usr/bin/fish",
    "strace": "usr/bin/strace",
}


def find_tool(name: str) -> str:
    """Return the path of a program, or nothing if it is not available."""
    unpacked = ROOT / ".tools" / name / _PROGRAMS[name]
    return shutil.which(unpacked.name) or (str(unpacked) if os.access(unpacked, os.X_OK) else "")


def library_path(name: str) -> str:
    """Return where an unpacked program finds its libraries."""
    return ":".join(str(path) for path in (ROOT / ".tools" / name / "usr" / "lib").glob("*-linux-gnu"))
