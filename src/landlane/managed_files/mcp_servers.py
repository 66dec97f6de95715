"""Entries of our MCP server in settings of others: what names an older interpreter makes room for ours."""

from __future__ import annotations

import tomllib

from landlane.clients.hook_command import server_words
from landlane.managed_files.json_entries import take_out, values_of
from landlane.managed_files.text_block import HASHES, drop_block, put_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_NAME = "landlane"
_LISTS = ("mcpServers", "mcp")


class NotToml(Exception):
    """A text that is not TOML, or would not be any more."""


def without_older(text: str, wanted: Any) -> str:
    """A JSON text without an entry of ours that would start another interpreter than is wanted now.

    One that somebody changed, by arguments or variables of their own, is not ours any more, and stays.

    Raises:
        NotJson: it cannot be read.
    """
    for table in _LISTS:
        entry = _at(wanted, table, _NAME)
        there = _at(values_of(text), table, _NAME) if entry is not None else None
        if there is not None and there != entry and _is_as_written(there, entry):
            text = take_out(text, {table: {_NAME: there}}, {table: {}}, lambda _: False)
    return text


def _at(values: Any, *keys: str) -> Any:
    for key in keys:
        if not _is_table(values):
            return None
        values = values.get(key)
    return values


def _is_table(found: object) -> bool:
    return isinstance(found, dict)


def _is_list(found: object) -> bool:
    return isinstance(found, list)


def _is_as_written(there: Any, entry: Any) -> bool:
    """Whether an entry differs from ours by nothing but the interpreter."""
    if not _is_table(there) or set(there) != set(entry):
        return False
    return list(_words(there))[1:] == server_words()[1:] and all(
        there[key] == entry[key] for key in entry if key not in ("command", "args")
    )


def _words(entry: Any) -> Iterator[Any]:
    command = entry.get("command")
    yield from command if _is_list(command) else [command]
    args = entry.get("args", [])
    yield from args if _is_list(args) else []


def put_table(text: str, block: str) -> str:
    """A TOML text with this block of ours; unchanged when somebody else has entered a server of our name.

    Raises:
        NotToml: it cannot be read, or not with the block.
    """
    try:
        rest = tomllib.loads(drop_block(text, HASHES).removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"it is not valid TOML: {error}") from None
    if _at(rest, "mcp_servers", _NAME) is not None:
        return text
    found = put_block(text, block, HASHES)
    try:
        tomllib.loads(found.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"our entry has no place in it: {error}") from None
    return found


def merge_contents(contents: list[Any]) -> Any:
    """Several wishes for one JSON file as one: tables key by key, lists one behind the other."""
    first, *others = contents
    for other in others:
        first = _join(first, other)
    return first


def _join(one: Any, other: Any) -> Any:
    if _is_table(one) and _is_table(other):
        return {**one, **{key: _join(one[key], other[key]) if key in one else other[key] for key in other}}
    if _is_list(one) and _is_list(other):
        return [*one, *other]
    return other


__all__ = ["NotToml", "merge_contents", "put_table", "without_older"]
