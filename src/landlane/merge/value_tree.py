"""Merge trees of tables, lists and plain values, key by key.

Tables are merged recursively. A list is a set that keeps its order. Anything else is one value: two different
new values are a conflict, and so is a key that one side removed and the other changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeGuard

from landlane.merge.combine_order import weave, weave_names
from landlane.merge.model import quote

Path = tuple[str, ...]

MOST_NESTING = 100
_VERSION = re.compile(r"[\^~>=<!v\s]*(\d+(?:\.\d+)+)(?:[-+.][0-9A-Za-z.+-]*)?\Z", re.ASCII)
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?:[<>=!~]=?|@|\Z)", re.ASCII)


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()


class Number(str):
    """A number of JSON as it is written, so that 1.0 and 1e3 keep their spelling."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def is_table(item: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether it is a table."""
    return isinstance(item, dict)


def is_list(item: Any) -> TypeGuard[list[Any]]:
    """Return whether it is a list."""
    return isinstance(item, list)


def is_same(left: Any, right: Any) -> bool:
    """Return whether two values are the same, also in type: 1, 1.0 and true are different."""
    if type(left) is not type(right):
        return False
    if is_table(left):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if is_list(left):
        return len(left) == len(right) and all(map(is_same, left, right))
    return left is right or repr(left) == repr(right)


def token(item: Any) -> str:
    """Return a text that is equal for two values if they are the same."""
    if is_table(item):
        return "{" + ",".join(f"{key!r}:{token(item[key])}" for key in sorted(item)) + "}"
    if is_list(item):
        return "[" + ",".join(map(token, item)) + "]"
    return f"{type(item).__name__} {item!r}"


def path_text(path: Path) -> str:
    """Return a path of keys as people write it, with quotes where a key is not plain."""
    plain = (key if re.fullmatch(r"[\w@/-]+", key) else f'"{key}"' for key in path)
    return quote(".".join(plain)) or "the file"


def merge_trees(base: Any, ours: Any, theirs: Any) -> tuple[Any, list[str]]:
    """Return the merged value, with keys in the order to write them, and the conflicts in words."""
    conflicts: list[str] = []
    return _merge(base, ours, theirs, (), conflicts), conflicts


def _merge(base: Any, ours: Any, theirs: Any, path: Path, conflicts: list[str]) -> Any:
    if is_same(ours, theirs) or is_same(base, theirs):
        return ours
    if is_same(base, ours):
        return theirs
    if is_table(ours) and is_table(theirs):
        return _merge_tables(base if is_table(base) else {}, ours, theirs, path, conflicts)
    if is_list(ours) and is_list(theirs):
        problems, merged = _merge_lists(base if is_list(base) else [], ours, theirs)
        conflicts += (f"{path_text(path)}: {problem}" for problem in problems)
        return merged
    conflicts.append(f"{path_text(path)}: {_describe(base, ours, theirs)}")
    return ours


def _merge_tables(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], path: Path, conflicts: list[str]
) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key in weave_names(list(base), list(ours), list(theirs)):
        first, second, third = (side.get(key, MISSING) for side in (base, ours, theirs))
        found = _merge(first, second, third, (*path, key), conflicts)
        if found is not MISSING:
            merged[key] = found
    return merged


def _merge_lists(base: list[Any], ours: list[Any], theirs: list[Any]) -> tuple[list[str], list[Any]]:
    """Return why these cannot be merged as sets, and the merged list."""
    sides = [{token(item): item for item in side} for side in (base, ours, theirs)]
    first, second, third = sides
    shared = f"the target has {_text_of(ours)}, the candidate {_text_of(theirs)}"
    if any(len(found) < len(side) for found, side in zip(sides, (base, ours, theirs), strict=True)):
        return [f"a list that holds something twice was changed by both: {shared}"], ours
    has_removed = not (first.keys() <= second.keys() and first.keys() <= third.keys())
    if has_removed and not all(type(item) is str for side in sides for item in side.values()):
        return [f"a list was changed by both, and not only by additions: {shared}"], ours
    problems = _conflicting_requirements(first, second, third)
    names = weave(list(first), list(second), list(third))
    if all(type(item) is str for item in (*ours, *theirs)):
        names = weave_names(list(first), list(second), list(third))
    kept = [name for name in names if name not in first or (name in second and name in third)]
    return problems, [second.get(name, third.get(name)) for name in kept]


def _conflicting_requirements(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> list[str]:
    """Return requirements such as `click>=8.1` that both sides added or changed differently."""
    left, right = _requirements(base, ours, theirs), _requirements(base, theirs, ours)
    before = _requirements(ours, base, theirs)
    return [
        _describe(before.get(name, MISSING), left[name], right[name])
        for name in left
        if name in right and left[name] != right[name]
    ]


def _requirements(without: dict[str, Any], side: dict[str, Any], other: dict[str, Any]) -> dict[str, str]:
    """Return by name each requirement of a side that neither of the others has."""
    found: dict[str, str] = {}
    for name, item in side.items():
        match = _REQUIREMENT.match(item) if type(item) is str else None
        if match and name not in without and name not in other:
            found[re.sub(r"[-_.]+", "-", match[1]).lower()] = item
    return found


def _text_of(item: Any) -> str:
    if item is MISSING:
        return "nothing"
    return quote(f'"{item}"' if type(item) is str else repr(item))


def _describe(base: Any, ours: Any, theirs: Any) -> str:
    if ours is MISSING:
        return f"the target removed it, the candidate changed it from {_text_of(base)} to {_text_of(theirs)}"
    if theirs is MISSING:
        return f"the candidate removed it, the target changed it from {_text_of(base)} to {_text_of(ours)}"
    origin = "both added it" if base is MISSING else f"both from {_text_of(base)}"
    both = f"the target has {_text_of(ours)}, the candidate {_text_of(theirs)}, {origin}"
    left, right = _version(ours), _version(theirs)
    if left is None or right is None:
        return both
    before = _version(base)
    if before is not None and left > before and right > before:
        return f"version conflict, both raised it: {both}"
    return f"version conflict: {both}"


def _version(item: Any) -> tuple[int, ...] | None:
    """Return the numbers of a version, also at the end of a requirement; None if it is not one."""
    if type(item) is not str or len(item) > 100:
        return None
    match = _VERSION.match(item) or _VERSION.match(re.sub(r"\A[A-Za-z][\w.-]*(\[[^\]]*\])?\s*", "", item))
    return tuple(map(int, match[1].split("."))) if match else None


def depth_of(item: Any) -> int:
    """Return how deep tables and lists are nested, without recursion."""
    depth = 0
    level: Sequence[Any] = [item]
    while level:
        level = [inner for outer in level for inner in _children(outer)]
        depth += 1
    return depth


def _children(item: Any) -> list[Any]:
    if is_table(item):
        return [*item.values()]
    return item if is_list(item) else []
