"""Merge a file by its merge kind, and check the result."""

from __future__ import annotations

from collections.abc import Mapping

from landlane.merge.counter import check_counter, merge_counter
from landlane.merge.keyed_map import check_map, merge_map
from landlane.merge.model import CannotMerge, Conflict, Merged, MergeKind, Regenerate
from landlane.merge.sorted_set import check_set, merge_set
from landlane.merge.text_file import find_marker, read_text
from landlane.merge.union import check_union, merge_union

_NO_OPTIONS: Mapping[str, str] = {}
_MERGERS = {
    MergeKind.UNION: merge_union,
    MergeKind.SORTED_SET: merge_set,
    MergeKind.KEYED_MAP: merge_map,
    MergeKind.COUNTER: merge_counter,
}
_CHECKERS = {
    MergeKind.UNION: check_union,
    MergeKind.SORTED_SET: check_set,
    MergeKind.KEYED_MAP: check_map,
    MergeKind.COUNTER: check_counter,
}


def merge_file(
    kind: MergeKind,
    base: bytes | None,
    ours: bytes | None,
    theirs: bytes | None,
    path: str,
    options: Mapping[str, str] = _NO_OPTIONS,
) -> Merged | Conflict | Regenerate:
    """Merge the changes that the target and the candidate made since the base; None is a missing file.

    If a side changed nothing, the result is the other side, byte for byte and unchecked; the same applies if
    both sides are equal, except for counters, where both increments count. A generated file is never merged:
    a command has to write it, since its sources may have changed on both sides.
    """
    # Two branches that each raise a counter by one are equal, and yet both count.
    is_counted = kind == MergeKind.COUNTER and base is not None and ours is not None
    is_ours = theirs == base or (theirs == ours and not is_counted)
    if kind == MergeKind.GENERATED:
        return Regenerate(path=path, provisional=ours if is_ours or base != ours else theirs)
    if is_ours:
        return Merged(content=ours)
    if base == ours:
        return Merged(content=theirs)
    if ours is None or theirs is None:
        remover, changer = ("target", "candidate") if ours is None else ("candidate", "target")
        return Conflict(reason=f"the {remover} removed {path}, and the {changer} changed it")
    try:
        merged = _MERGERS[kind](base, ours, theirs, path, options)
    except CannotMerge as stop:
        return stop.conflict
    # The result must be valid, at least as far as one of the sides was.
    assert merged.content is not None
    sides = [side for side in (base, ours, theirs) if side is not None]
    problems = [check_file(kind, merged.content, path, options, side) for side in sides]
    if all(problems):
        return Conflict(reason=f"the merge of {path} did not come out right: {problems[-1]}")
    return merged


def check_file(
    kind: MergeKind,
    content: bytes,
    path: str,
    options: Mapping[str, str] = _NO_OPTIONS,
    before: bytes | None = None,
) -> str:
    """Return what is wrong with a file of this kind; empty if it is valid.

    Headings that were repeated and sets that were unsorted `before` are accepted.
    """
    if kind == MergeKind.GENERATED:
        return ""
    try:
        marker = find_marker(read_text(content, "the file").lines)
        return f"it has {marker}" if marker else _CHECKERS[kind](content, path, options, before)
    except CannotMerge as stop:
        return stop.conflict.reason
