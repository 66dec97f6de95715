"""What merging a hot file comes to: a content, a conflict in words, or the wish to have it generated anew.

Throughout this package `ours` is the target branch, with all that landed before, and `theirs` the candidate.
People are told "the target" and "the candidate".
"""

from __future__ import annotations

from landlane.values import value

SIDES = ("the common base", "the target", "the candidate")
_LONGEST_SHOWN = 120


@value
class Merged:
    """The content that holds what both sides did; None when the file is gone."""

    content: bytes | None
    notes: tuple[str, ...] = ()


@value
class Conflict:
    """Nothing was merged: why, and in detail which keys, lines or values stand against each other."""

    reason: str
    details: tuple[str, ...] = ()


@value
class Regenerate:
    """A file that a command writes: run it on the merged tree; until then, what may stand in its place."""

    path: str
    provisional: bytes | None


class CannotMerge(Exception):
    """Carries a conflict out of the depth of a merge; it never leaves this package."""

    def __init__(self, reason: str, *details: str) -> None:
        super().__init__(reason)
        self.conflict = Conflict(reason=reason, details=details)


def shown(text: object) -> str:
    """A value or line as it is quoted in a conflict: on one line, and not too long."""
    line = " ".join(str(text).encode("utf-8", "replace").decode().split())
    return line if len(line) <= _LONGEST_SHOWN else line[: _LONGEST_SHOWN - 3] + "..."
