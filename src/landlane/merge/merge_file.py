"""Merge a file by its merge kind, and check the result."""

from __future__ import annotations

from collections.abc import Mapping

from landlane.merge.counter import check_counter, merge_counter
from landlane.merge.keyed_map import check_map, merge_map
from landlane.merge.model import (
    COUNTER,
    GENERATED,
    KEYED_MAP,
    KINDS,
    SORTED_SET,
    UNION,
    CannotMerge,
    Conflict,
    Merged,
    Regenerate,
    shown,
)
from landlane.merge.sorted_set import check_set, merge_set
from landlane.merge.text_file import find_marker, read_text
from landlane.merge.union import check_union, merge_union

_MERGERS = {UNION: merge_union, SORTED_SET: merge_set, KEYED_MAP: merge_map, COUNTER: merge_counter}
_CHECKERS = {UNION: check_union, SORTED_SET: check_set, KEYED_MAP: check_map, COUNTER: check_counter}


def merge_file(
    kind: str,
    base: bytes | None,
    ours: bytes | None,
    theirs: bytes | None,
    path: str,
    options: Mapping[str, object],
) -> Merged | Conflict | Regenerate:
    """Merge what the target and the candidate made of the base; None is an absent file.

    If a side changed nothing, the result is the other side, byte for byte and unchecked; so it is if both
    sides agree, except for counters, where both increments count. A generated file is never merged: a command
    has to write it, since its sources may have changed on both sides.
    """
    if kind not in KINDS:
        return Conflict(reason=f"{shown(kind)!r} is no merge kind; there are {', '.join(KINDS)}")
    # Two branches that each raise a counter by one are equal, and yet both count.
    is_counted = kind == COUNTER and base is not None and ours is not None
    is_ours = theirs == base or (theirs == ours and not is_counted)
    if kind == GENERATED:
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
    # The result must be in order, at least as far as one of the sides was.
    assert merged.content is not None
    known = [{**options, "base": side} for side in (base, ours, theirs) if side is not None]
    problems = [check_file(kind, merged.content, path, before) for before in known]
    if all(problems):
        return Conflict(reason=f"the merge of {path} did not come out right: {problems[-1]}")
    return merged


def check_file(kind: str, content: bytes, path: str, options: Mapping[str, object]) -> str:
    """Return what is wrong with a file of this kind; empty when nothing is.

    With the option `base`, the bytes of an earlier version, headings that were repeated and sets that were
    unsorted in it are accepted.
    """
    if kind == GENERATED:
        return ""
    if kind not in KINDS:
        return f"{shown(kind)!r} is no merge kind"
    try:
        marker = find_marker(read_text(content, "the file").lines)
        return f"it has {marker}" if marker else _CHECKERS[kind](content, path, options)
    except CannotMerge as stop:
        return stop.conflict.reason
