"""The kinds of structural merges, and the results of a merge.

Throughout this package `ours` is the target branch, with all that landed before, and `theirs` the candidate.
Messages say "the target" and "the candidate".
"""

from __future__ import annotations

from enum import StrEnum

from landlane.values import value


class MergeKind(StrEnum):
    """How files are merged that several branches change."""

    UNION = "union"
    SORTED_SET = "sorted-set"
    KEYED_MAP = "keyed-map"
    COUNTER = "counter"
    GENERATED = "generated"


SIDES = ("the common base", "the target", "the candidate")
_LONGEST_SHOWN = 120


@value
class Merged:
    """The content with the changes of both sides; None if the file is deleted."""

    content: bytes | None
    notes: tuple[str, ...] = ()


@value
class Conflict:
    """Why nothing was merged, and which keys, lines or values conflict."""

    reason: str
    details: tuple[str, ...] = ()


@value
class Regenerate:
    """A file that a command writes: run it on the merged tree. `provisional` is the content until then."""

    path: str
    provisional: bytes | None


class CannotMerge(Exception):
    """Carries a conflict out of a merge; it never leaves this package."""

    def __init__(self, reason: str, *details: str) -> None:
        super().__init__(reason)
        self.conflict = Conflict(reason=reason, details=details)


def quote(text: object) -> str:
    """Return a value or line for a message: on one line, and shortened."""
    line = " ".join(str(text).encode("utf-8", "replace").decode().split())
    return line if len(line) <= _LONGEST_SHOWN else line[: _LONGEST_SHOWN - 3] + "..."
