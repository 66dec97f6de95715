"""The door of this package: merging a hot file by the kind of its class, and checking what came of it."""

from __future__ import annotations

from landlane.merge.counter import check_counter, merge_counter
from landlane.merge.file_kinds import COUNTER, GENERATED, KEYED_MAP, KINDS, SORTED_SET, UNION
from landlane.merge.keyed_map import check_map, merge_map
from landlane.merge.result import CannotMerge, Conflict, Merged, Regenerate, shown
from landlane.merge.sorted_set import check_set, merge_set
from landlane.merge.text_file import marker_problem, read_text
from landlane.merge.union import check_union, merge_union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def merge_file(
    kind: str,
    base: bytes | None,
    ours: bytes | None,
    theirs: bytes | None,
    path: str,
    options: Mapping[str, object],
) -> Merged | Conflict | Regenerate:
    """What the target and the candidate made of the base, joined by structure; None is an absent file.

    A side that changed nothing leaves the other as it is, byte for byte and unchecked; so do two sides
    that agree, save for counters, where both raises count. A generated file is never merged: it has to be
    written anew, since what it is made from may have changed on both sides.
    """
    if kind not in KINDS:
        return Conflict(reason=f"{shown(kind)!r} is no kind of hot file; there are {', '.join(KINDS)}")
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
        return _checked(
            _merge(kind, base, ours, theirs, path, options), kind, (base, ours, theirs), path, options
        )
    except CannotMerge as stop:
        return stop.conflict


def check_file(kind: str, content: bytes, path: str, options: Mapping[str, object]) -> str:
    """What is wrong with a file of this kind, or nothing.

    With the option `base`, the bytes of an earlier state, headings that were repeated and sets that were
    unsorted before are forgiven.
    """
    try:
        problem = marker_problem(read_text(content, "the file").lines) if kind != GENERATED else ""
        return f"it has {problem}" if problem else _check(kind, content, path, options)
    except CannotMerge as stop:
        return stop.conflict.reason


def _merge(
    kind: str, base: bytes | None, ours: bytes, theirs: bytes, path: str, options: Mapping[str, object]
) -> Merged:
    if kind == UNION:
        return merge_union(base, ours, theirs)
    if kind == SORTED_SET:
        return merge_set(base, ours, theirs, options)
    if kind == KEYED_MAP:
        return merge_map(base, ours, theirs, path)
    return merge_counter(base, ours, theirs, options)


def _check(kind: str, content: bytes, path: str, options: Mapping[str, object]) -> str:
    if kind == UNION:
        return check_union(content, options)
    if kind == SORTED_SET:
        return check_set(content, options)
    if kind == KEYED_MAP:
        return check_map(content, path)
    if kind == COUNTER:
        return check_counter(content, options)
    return "" if kind == GENERATED else f"{shown(kind)!r} is no kind of hot file"


def _checked(
    merged: Merged,
    kind: str,
    sides: tuple[bytes | None, bytes | None, bytes | None],
    path: str,
    options: Mapping[str, object],
) -> Merged | Conflict:
    """The result if it is in order, as far as one of the sides was before."""
    assert merged.content is not None
    known = [{**options, "base": side} for side in sides if side is not None]
    problems = [check_file(kind, merged.content, path, before) for before in known]
    if all(problems):
        return Conflict(reason=f"the merge of {path} did not come out right: {problems[-1]}")
    return merged
