"""Identifiers and secrets: short ones to copy, unguessable ones as proof."""

from __future__ import annotations

import os

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:  # the C modules behind hashlib: importing hashlib itself loads OpenSSL, slower than a claim
        from _sha2 import sha256  # Python 3.12 and later
    except ImportError:  # pragma: no cover - depends on the interpreter
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256

# An id is one of these letters and a number: task, landing, gate, review, handoff, workspace, rescue, deploy,
# misplaced change.
_RECORD_LETTERS = "TLGVHWRDB"
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # no characters that look alike


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short_id(prefix: str, length: int = 10) -> str:
    """Return a random identifier that a person can read out and copy: `s-k3m9…`."""
    raw = os.urandom(length)
    return f"{prefix}-" + "".join(_LETTERS[byte % len(_LETTERS)] for byte in raw)


def is_record_id(text: str) -> bool:
    """Return whether a text has the form of an id such as `T12` or `L9`."""
    return text[:1] in _RECORD_LETTERS and bool(text[:1]) and text[1:].isascii() and text[1:].isdecimal()


def new_secret() -> str:
    """Return a secret that proves that a process acts for a session."""
    return os.urandom(24).hex()


def new_uuid() -> str:
    """Return a random UUID (version 4), without importing `uuid`."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_uuid(text: str) -> bool:
    """Return whether a text is a lower-case UUID."""
    parts = text.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        character in "0123456789abcdef" for part in parts for character in part
    )


@value
class Credentials:
    """What a process must show to act for a session."""

    session: str
    secret: str
    agent: str = ""
    generation: int = 0


_COUNTER_BITS = 32
_LARGEST_TOKEN = 2**53 - 1  # the largest whole number that JSON keeps exactly in every language


def token_of(epoch: int, number: int) -> int:
    """Return the fencing token of a grant: an epoch that a restored store raises, then a growing counter."""
    token = epoch << _COUNTER_BITS | number
    if number >= 1 << _COUNTER_BITS or token > _LARGEST_TOKEN:
        raise OverflowError(f"no token is left in epoch {epoch}")
    return token


def epoch_of(token: int) -> int:
    """Return the epoch in which a token was given out."""
    return token >> _COUNTER_BITS
