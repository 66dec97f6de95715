"""The name of the operating system, for reports."""

from __future__ import annotations

import platform


def system_name() -> str:
    """Return the operating system, its version and the kind of machine."""
    return platform.platform()
