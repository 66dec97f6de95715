"""Read numbers, waiting times and files that are given as arguments."""

from __future__ import annotations

import os
import sys

from landlane.cli.specs.model import FOREVER
from landlane.clock import parse_duration
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FOREVER_MS = 10 * 366 * 86_400_000


def read_number(text: str, what: str) -> int | None:
    """Return the number, or None when none was given.

    Raises:
        Malformed: it is not a whole number of a sensible size.
    """
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 16:
        raise Malformed(
            f"{what} {text[:40]} is not a whole number",
            code="BAD_NUMBER",
            hint="give a whole number",
            unknown=text,
            example="1",
        )
    return int(text)


def read_versions(texts: Sequence[str], what: str = "--expect") -> dict[str, int]:
    """Return the versions of keys that are given as `KEY=VERSION`.

    Raises:
        Malformed: one is not in this form.
    """
    versions: dict[str, int] = {}
    for text in texts:
        key, equals, number = text.rpartition("=")
        if not equals or not key:
            raise Malformed(
                f"{what} {text[:60]} is not KEY=VERSION",
                code="BAD_CALL",
                hint="name the key and the version you read",
                unknown=text,
                example=f"{text or 'plan'}=3",
            )
        versions[key] = read_number(number, what) or 0
    return versions


def read_wait(text: str) -> int:
    """Return how many milliseconds to wait; zero when nothing was given.

    Raises:
        Malformed: it is not a length of time.
    """
    if text == FOREVER:
        return FOREVER_MS
    return parse_duration(text, what="--wait") if text else 0


def read_bytes(name: str, most: int, folder: str = "") -> bytes:
    """Return at most so many bytes of a file, or of standard input for `-`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the name is not a valid path.
    """
    if name == "-":
        return sys.stdin.buffer.read(most)
    with open(os.path.join(folder, name), "rb") as file:
        return file.read(most)


def read_file(name: str, what: str, longest: int) -> str:
    """Return the text of a file, or of standard input for `-`, without its last line ending."""
    if not name:
        return ""
    most = 4 * longest + 2  # bytes of so many characters, and one more to see that there are more
    try:
        raw = read_bytes(name, most)
        text = raw.decode("utf-8").removesuffix("\n") if len(raw) < most else ""
    except FileNotFoundError as error:
        hint = "give the path of a text file, or - for standard input"
        raise Malformed(f"no file {name[:80]}", code="UNREADABLE_FILE", hint=hint, file=name) from error
    except (OSError, ValueError) as error:
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
