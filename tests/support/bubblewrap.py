"""The bubblewrap program that tests use."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def find_bubblewrap() -> str:
    """Return the system's bwrap, or the one that `scripts/bubblewrap.sh` put into .tools, or nothing."""
    unpacked = ROOT / ".tools" / "bubblewrap" / "usr" / "bin" / "bwrap"
    return shutil.which("bwrap") or (str(unpacked) if os.access(unpacked, os.X_OK) else "")
