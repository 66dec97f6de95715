"""Whether a stream is a terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal; one that is closed, or was never there, is not."""
    return stream is not None and stream.isatty()
