"""What a file holds now, as it is remembered for whoever has seen it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.operations.reads import Seen

GONE: Seen = ("", "")
_MOST_BYTES = 64 * 1024 * 1024  # beyond, the stamp has to do: reading it on every edit would be felt


def look_at(path: str) -> Seen:
    """The digest of a file's content and its stamp; `GONE` where there is none. Links are followed.

    `hooks/lean_road.py` computes the same, without these imports.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return GONE
    try:
        stamp = stamp_of(os.fstat(descriptor))
        if os.fstat(descriptor).st_size > _MOST_BYTES:
            return stamp, stamp
        # Not through hashlib: that would load all of OpenSSL, which costs more than the rest of a hook.
        from _blake2 import blake2b

        told = blake2b(digest_size=16)
        while block := os.read(descriptor, 1 << 20):
            told.update(block)
        return told.hexdigest(), stamp
    except OSError:  # a folder, for one
        return GONE
    finally:
        os.close(descriptor)


def stamp_of(found: os.stat_result) -> str:
    """What tells a file that was not touched since: all that a write changes, and what a replacement does."""
    return f"{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_size}:{found.st_ino}"
