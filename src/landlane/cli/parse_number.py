"""Parse numbers from the command line."""

from __future__ import annotations

from landlane.errors import Malformed


def read_number(text: str, what: str) -> int | None:
    """Return the number, or None when none was given.

    Raises:
        Malformed: it is not a whole number of a sensible size.
    """
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 16:
        raise Malformed(
            f"{what} {text[:40]!r} is not a number", code="BAD_NUMBER", hint="give a whole number"
        )
    return int(text)
