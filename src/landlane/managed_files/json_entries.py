"""Insert our entries into a JSON file of a user, and remove them again.

Both edit the text in small steps: one part is added, replaced or dropped, then the text is read again, until
no edit is left. The generators below yield the edited texts; only the first one of each reading is used. What
is not ours keeps every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from landlane.managed_files.json_splice import add_part, drop_part, new_document, replace_part
from landlane.managed_files.text_block import newline_of
from landlane.merge.json_source import NotJson, read_json
from landlane.merge.source_spans import Node, Source
from landlane.merge.value_tree import is_list, is_table

IsOurs = Callable[[str], bool]

MISSING: Any = object()  # in place of a value that the original did not have
_MOST_STEPS = 2000
_BLANK = "\ufeff \t\r\n"


def insert_entries(text: str, wanted: Any, is_ours: IsOurs) -> str:
    """Return the text with the wanted entries.

    Tables are merged key by key. In lists, our old entries are replaced in place, and new ones are added at
    the end. Anything else is set only where there is no value.

    Raises:
        NotJson: it cannot be read, or has another value where a table or list is needed.
    """
    if not text.strip(_BLANK):
        return text[: text.startswith("\ufeff")] + new_document(wanted, newline_of(text))
    return _apply_all(text, lambda source: _insert(source, source.root, wanted, is_ours, ""))


def remove_entries(text: str, wanted: Any, original: Any, is_ours: IsOurs) -> str:
    """Return the text without the inserted entries; `original` are the values from before, or MISSING.

    Raises:
        NotJson: it cannot be read.
    """
    return _apply_all(text, lambda source: _remove(source, source.root, wanted, original, is_ours))


def values_of(text: str) -> Any:
    """Return the values of a JSON text with comments; MISSING for a blank one.

    Raises:
        NotJson: it cannot be read.
    """
    return read_json(text, has_comments=True).root.value if text.strip(_BLANK) else MISSING


def merge_wanted(first: Any, second: Any) -> Any:
    """Merge what is wanted of one file: tables key by key, lists one after the other."""
    if is_table(first) and is_table(second):
        both = {key: merge_wanted(first[key], second[key]) for key in first if key in second}
        return {**first, **second, **both}
    return [*first, *second] if is_list(first) and is_list(second) else second


def _apply_all(text: str, edits: Callable[[Source], Iterator[str]]) -> str:
    for _ in range(_MOST_STEPS):
        edited = next(edits(read_json(text, has_comments=True)), None)
        if edited is None:
            return text
        text = edited
    raise NotJson("it has too many entries")


def _insert(source: Source, node: Node, wanted: Any, is_ours: IsOurs, name: str) -> Iterator[str]:
    if is_table(wanted):
        if not is_table(node.value):
            raise NotJson(f"{name or 'its content'} is not an object")
        yield from _insert_members(source, node, wanted, is_ours)
    elif is_list(wanted):
        if not is_list(node.value):
            raise NotJson(f"{name} is not a list")
        yield from _insert_items(source, node, wanted, is_ours)


def _insert_members(source: Source, node: Node, wanted: dict[str, Any], is_ours: IsOurs) -> Iterator[str]:
    members = {member.key: member for member in node.members}
    for key, item in wanted.items():
        if key in members:
            yield from _insert(source, members[key].node, item, is_ours, key)
        else:
            yield add_part(source, node, key, item)
    yield from _remove_outdated(source, node, wanted, is_ours)


def _insert_items(source: Source, node: Node, wanted: list[Any], is_ours: IsOurs) -> Iterator[str]:
    yield from _split_groups(source, node, is_ours)
    old = [index for index, item in enumerate(node.items) if _count(item.value, is_ours)[0]]
    ours = [item for item in wanted if _count(item, is_ours)[0]]
    for index, item in zip(old, ours, strict=False):
        if node.items[index].value != item:
            yield replace_part(source, node.items[index], item)
    if len(old) > len(ours):
        yield drop_part(source, node, old[len(ours)])
    for item in (*ours[len(old) :], *(one for one in wanted if one not in ours)):
        if item not in node.value:
            yield add_part(source, node, None, item)


def _count(item: Any, is_ours: IsOurs) -> tuple[int, int]:
    """Return how many entries of an item are ours, and how many are not."""
    groups = [one for one in item.values() if _is_group(one)] if is_table(item) else []
    if groups:
        counts = [_count(entry, is_ours) for group in groups for entry in group]
        return sum(count[0] for count in counts), sum(count[1] for count in counts)
    return (1, 0) if _mentions(item, is_ours) else (0, 1)


def _is_group(item: Any) -> bool:
    return is_list(item) and bool(item) and all(is_table(one) for one in item)


def _mentions(item: Any, is_ours: IsOurs) -> bool:
    if isinstance(item, str):
        return is_ours(item)
    parts = item.values() if is_table(item) else item if is_list(item) else ()
    return any(_mentions(part, is_ours) for part in parts)


def _remove(source: Source, node: Node, wanted: Any, original: Any, is_ours: IsOurs) -> Iterator[str]:
    if is_table(wanted) and is_table(node.value):
        yield from _remove_members(source, node, wanted, original, is_ours)
    elif is_list(wanted) and is_list(node.value):
        yield from _drop_ours(source, node, is_ours)
        before = original if is_list(original) else []
        for index, item in enumerate(node.items):
            if item.value in wanted and item.value not in before:
                yield drop_part(source, node, index)


def _remove_members(
    source: Source, node: Node, wanted: dict[str, Any], original: Any, is_ours: IsOurs
) -> Iterator[str]:
    before = original if is_table(original) else {}
    for index, member in enumerate(node.members):
        if member.key not in wanted:
            continue
        item = wanted[member.key]
        was = before.get(member.key, MISSING)
        yield from _remove(source, member.node, item, was, is_ours)
        is_container = is_table(item) or is_list(item)
        is_leftover = not member.node.value if is_container else member.node.value == item
        if was is MISSING and is_leftover:
            yield drop_part(source, node, index)
    yield from _remove_outdated(source, node, wanted, is_ours)


def _remove_outdated(source: Source, node: Node, wanted: dict[str, Any], is_ours: IsOurs) -> Iterator[str]:
    """Drop our entries under keys that are not wanted any more, as an earlier release wrote them."""
    for index, member in enumerate(node.members):
        if member.key in wanted or not is_list(member.node.value):
            continue
        counts = [_count(item, is_ours) for item in member.node.value]
        if counts and all(ours and not others for ours, others in counts):
            yield drop_part(source, node, index)
        yield from _drop_ours(source, member.node, is_ours)


def _drop_ours(source: Source, node: Node, is_ours: IsOurs) -> Iterator[str]:
    yield from _split_groups(source, node, is_ours)
    for index, item in enumerate(node.items):
        if _count(item.value, is_ours)[0]:
            yield drop_part(source, node, index)


def _split_groups(source: Source, node: Node, is_ours: IsOurs) -> Iterator[str]:
    """Drop our entries from groups that also have entries of others."""
    for item in node.items:
        ours, others = _count(item.value, is_ours)
        if ours and others:
            for member in item.members:
                if _is_group(member.node.value):
                    yield from _drop_ours(source, member.node, is_ours)
