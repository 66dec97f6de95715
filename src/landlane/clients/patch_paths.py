"""Which files a patch in the `*** Begin Patch` form writes: added, updated, deleted, both ends of a move."""

from __future__ import annotations

from landlane.clients.shared_hook_format import odd

_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")

# What Codex takes off the ends of a line. Python's own `strip` takes more, and so would name another file.
_SPACES = " \t\n\x0b\x0c\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
_ENDS = _SPACES + "".join(map(chr, range(0x2000, 0x200B)))


def patched_paths(patch: str) -> tuple[str, ...]:
    """The paths that a patch names, as it names them, each once.

    A line of context that looks like a header counts as one: a path too many is harmless, one too few is not.

    Raises:
        Malformed: it names none, so that nobody can say what it would write.
    """
    found: dict[str, None] = {}
    for line in patch.split("\n"):
        stripped = line.strip(_ENDS)
        for mark in _MARKS:
            if stripped.startswith(mark) and len(stripped) > len(mark):
                found[stripped[len(mark) :]] = None
    if not found:
        raise odd("a patch that names no file")
    return tuple(found)
