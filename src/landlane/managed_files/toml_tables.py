"""Put a table of ours into a TOML file of a user, and drop tables; every other line stays as it is."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

from landlane.managed_files.text_block import HASHES, drop_block, put_block


class NotToml(Exception):
    """A text that is not TOML, or would not be any more."""


def put_table(text: str, block: str) -> str:
    """Return the text with our block; unchanged if the user has added a server of our name.

    Raises:
        NotToml: it cannot be read, or not with the block.
    """
    rest = _parse(drop_block(text, HASHES), "it is not valid TOML")
    servers = rest.get("mcp_servers")
    if isinstance(servers, dict) and "landlane" in servers:
        return text
    changed = put_block(text, block, HASHES)
    _parse(changed, "our entry has no place in it")
    return changed


def drop_tables(text: str, is_unwanted: Callable[[tuple[str, ...]], bool]) -> str:
    """Return the text without the tables whose keys are unwanted, and the blank line before each.

    A comment below a table's last line belongs to what follows, and stays.

    Raises:
        NotToml: it is not valid TOML, or would not be without them.
    """
    _parse(text, "it is not valid TOML")
    kept: list[str] = []
    is_dropping = False
    for line in text.splitlines(keepends=True):
        keys = _header_keys(line)
        if keys:
            is_dropping = is_unwanted(keys)
            if is_dropping and kept and not kept[-1].strip():
                kept.pop()
        elif is_dropping and line.lstrip().startswith("#"):
            is_dropping = False
        if not is_dropping:
            kept.append(line)
    _parse("".join(kept), "it is not valid TOML")
    return "".join(kept)


def _parse(text: str, problem: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"{problem}: {error}") from None


def _header_keys(line: str) -> tuple[str, ...]:
    """Return the keys of a line that begins a table; none for any other line."""
    if not line.startswith("[") or line.startswith("[["):
        return ()
    try:
        table: Any = tomllib.loads(line)
    except ValueError:
        return ()
    keys: list[str] = []
    while table:
        keys += table
        table = table[keys[-1]]
    return tuple(keys)
