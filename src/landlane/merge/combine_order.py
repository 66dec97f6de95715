"""Combine two orders: find the places of the candidate's additions among the names of the target."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def weave(base: Sequence[Name], ours: Sequence[Name], theirs: Sequence[Name]) -> list[Name]:
    """Return the distinct names of both sides: in the target's order, each new one after its predecessor.

    Where both sides add at the same place, the target's additions come first. Only if the candidate alone
    rearranged the existing names, its order is used instead.
    """
    in_base, in_ours, in_theirs = set(base), set(ours), set(theirs)
    common = in_base & in_ours & in_theirs
    before, now, then = ([name for name in side if name in common] for side in (base, ours, theirs))
    if now == before and then != before:
        return _insert(list(dict.fromkeys(theirs)), ours, in_base, is_first=True)
    return _insert(list(dict.fromkeys(ours)), theirs, in_base, is_first=False)


def _insert(order: list[Name], others: Sequence[Name], in_base: set[Name], *, is_first: bool) -> list[Name]:
    """Insert each missing one of the others after its predecessor; `is_first` before rival additions."""
    after: dict[Name | None, list[Name]] = {}
    present = set(order)
    anchor: Name | None = None
    for name in dict.fromkeys(others):
        if name in present:
            anchor = name
        else:
            after.setdefault(anchor, []).append(name)
    settled = in_base.union(others)
    woven: list[Name] = []
    pending = after.pop(None, [])
    for name in order:
        # Rival additions are new names in `order` that are where these would go. Names of the base go before
        # them.
        if pending and (is_first or name in settled or pending[0] in in_base):
            woven += pending
            pending = []
        woven.append(name)
        if name in after:
            pending = pending + after.pop(name)
    return woven + pending


def is_sorted(names: Sequence[str]) -> bool:
    """Return whether these texts are sorted; False for fewer than two."""
    return len(names) > 1 and all(a <= b for a, b in pairwise(names))


def weave_names(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Combine like `weave`, but keep names sorted that are sorted on both sides."""
    woven = weave(base, ours, theirs)
    return sorted(woven) if is_sorted(ours) and is_sorted(theirs) else woven
