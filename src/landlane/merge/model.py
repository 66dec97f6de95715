"""The kinds of structural merges, which files they apply to, and what a merge results in.

Throughout this package `ours` is the target branch, with all that landed before, and `theirs` the candidate.
Messages say "the target" and "the candidate".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from landlane.values import value

UNION = "union"
SORTED_SET = "sorted-set"
KEYED_MAP = "keyed-map"
COUNTER = "counter"
GENERATED = "generated"
KINDS = (UNION, SORTED_SET, KEYED_MAP, COUNTER, GENERATED)

SIDES = ("the common base", "the target", "the candidate")
_LONGEST_SHOWN = 120
_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


@value
class MergeRule:
    """Files that match this pattern are merged as this kind, with these options."""

    pattern: str
    kind: str
    options: Mapping[str, object] = _NO_OPTIONS


def rule_for(path: str, rules: Sequence[MergeRule], matches: Callable[[str, str], bool]) -> MergeRule | None:
    """Return the last rule whose pattern matches the path, so that later rules refine earlier ones.

    `matches` is called with a pattern and the path.
    """
    return next((rule for rule in reversed(rules) if matches(rule.pattern, path)), None)


@value
class Merged:
    """The content that holds what both sides did; None when the file is deleted."""

    content: bytes | None
    notes: tuple[str, ...] = ()


@value
class Conflict:
    """Nothing was merged: why, and which keys, lines or values conflict."""

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


def shown(text: object) -> str:
    """Return a value or line as a conflict quotes it: on one line, and not too long."""
    line = " ".join(str(text).encode("utf-8", "replace").decode().split())
    return line if len(line) <= _LONGEST_SHOWN else line[: _LONGEST_SHOWN - 3] + "..."
