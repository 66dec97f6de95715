"""Read the text of a file argument or of standard input."""

from __future__ import annotations

import sys

from landlane.errors import Malformed


def read_file(name: str, what: str, longest: int) -> str:
    """Return the text of a file, or of standard input for `-`, without its last line ending."""
    if not name:
        return ""
    most = 4 * longest + 2  # bytes of so many characters, and one more to see that there are more
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(most)
        else:
            with open(name, "rb") as file:
                raw = file.read(most)
        text = raw.decode("utf-8").removesuffix("\n") if len(raw) < most else ""
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise Malformed(
            f"{what} {name[:80]!r} cannot be read as text: {getattr(error, 'strerror', None) or 'not UTF-8'}",
            code="UNREADABLE_FILE",
            hint="give the path of a text file, or - for standard input",
        ) from error
    if len(raw) >= most or len(text) > longest:
        raise Malformed(
            f"{what} {name[:80]!r} has more than {longest:,} characters",
            code="TEXT_TOO_LONG",
            hint="keep it shorter, and name a file for the rest",
        )
    return text
