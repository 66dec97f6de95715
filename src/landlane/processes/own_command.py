"""The full path of our own command, and whether shells find it."""

from __future__ import annotations

import os
import sys

NAME = "landlane"

# On the search path of every shell, also of a login shell, which does not inherit that of its terminal.
_EVERYWHERE = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def own_command() -> str:
    """Return the full path of our command beside this interpreter; empty when it is not there."""
    path = os.path.join(os.path.dirname(sys.executable), NAME)
    return path if os.access(path, os.X_OK) else ""


def command_off_path() -> str:
    """Return the full path of our command if some shells do not find it by name; else empty."""
    if any(os.access(os.path.join(folder, NAME), os.X_OK) for folder in _EVERYWHERE):
        return ""
    return own_command()
