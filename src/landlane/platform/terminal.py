"""Whether a stream is a terminal, and whether this process may draw on it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal; one that is closed, or was never there, is not."""
    return stream is not None and stream.isatty()


def can_redraw(stream: Any) -> bool:
    """Return whether lines on a stream can be replaced: a terminal with this process in the foreground."""
    if not is_terminal(stream):
        return False
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # not our controlling terminal, or no descriptor: no shell moves us to the background
        return True
