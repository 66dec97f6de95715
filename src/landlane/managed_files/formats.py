"""Insert content into a file of a user and remove it again, by the file's form."""

from __future__ import annotations

import os
from typing import Any

from landlane.clients.setup_files import (
    IGNORED,
    JSON,
    LINE,
    NEW,
    OUTSIDE,
    TEXT,
    TOML,
    WHOLE,
    FileForm,
    is_ours,
    server_words,
)
from landlane.managed_files.json_entries import MISSING, insert_entries, remove_entries, values_of
from landlane.managed_files.text_block import HASHES, drop_block, drop_line, has_line, put_block, put_line
from landlane.managed_files.toml_tables import NotToml, drop_tables, put_table
from landlane.merge.json_source import NotJson
from landlane.merge.value_tree import is_list, is_table

_SERVER = "landlane"
_SERVER_LISTS = ("mcpServers", "mcp")


class NotMergeable(Exception):
    """A file that cannot be changed without harm, and why."""


def insert_content(form: FileForm, content: Any, before: bytes | None) -> bytes:
    """Return the file with the content; unchanged if it has the content already.

    Raises:
        NotMergeable: it cannot be read, or belongs to another program.
    """
    if form == NEW and before is not None:
        return before
    if form in (NEW, WHOLE):
        is_foreign = before is not None and before != content.encode() and not is_ours(_lossy(before))
        if is_foreign:
            raise NotMergeable("another file has this name")
        return content.encode()
    text = _decode(before)
    try:
        if form == JSON:
            return insert_entries(drop_old_server(text, content), content, is_ours).encode()
        if form == TOML:
            return put_table(text, content).encode()
    except NotJson as error:
        raise NotMergeable(_why_not_json(error)) from None
    except NotToml as error:
        raise NotMergeable(str(error)) from None
    if form == LINE:
        is_there = has_line(text, content, content.replace("@", "@./", 1))
        return (text if is_there else put_line(text, content)).encode()
    return put_block(text, content, *((HASHES,) if form == IGNORED else ())).encode()


def remove_content(form: FileForm, content: Any, original: bytes | None, now: bytes) -> bytes | None:
    """Return the file without our content, also if it was changed since; None when nothing is left.

    Raises:
        NotMergeable: our content cannot be identified any more.
    """
    if form in (NEW, WHOLE):
        raise NotMergeable("you changed it since")
    text = _decode(now)
    try:
        if form == JSON:
            before = MISSING if original is None else values_of(_decode(original))
            rest = remove_entries(text, content, before, is_ours)
        elif form == OUTSIDE:
            rest = _without_trust(text, content, _decode(original))
        elif form == LINE:
            rest = drop_line(text, content)
        else:
            rest = drop_block(text, *((HASHES,) if form != TEXT else ()))
    except NotJson as error:
        raise NotMergeable(_why_not_json(error)) from None
    except NotToml as error:
        raise NotMergeable(str(error)) from None
    is_empty = rest.strip("\ufeff \t\r\n") in ("", "{}")
    return None if original is None and is_empty else rest.encode()


def _without_trust(text: str, root: str, original: str) -> str:
    """Return Codex's settings without what it noted for the hooks of this checkout."""
    hooks = os.path.join(root, ".codex/hooks.json:")
    had_project = f'[projects."{root}"]' in original

    def is_unwanted(keys: tuple[str, ...]) -> bool:
        is_state = keys[:2] == ("hooks", "state") and len(keys) > 2 and keys[2].startswith(hooks)
        return is_state or (keys == ("projects", root) and not had_project)

    return drop_tables(text, is_unwanted)


def has_content(form: FileForm, content: Any, now: bytes | None) -> bool:
    """Return whether a file holds the content, just as it would be written now."""
    try:
        return now is not None and insert_content(form, content, now) == now
    except NotMergeable:
        return False


def drop_old_server(text: str, wanted: Any) -> str:
    """Return a JSON text without an entry of our MCP server that would start another interpreter.

    An entry that the user changed, with other arguments or variables, is not ours any more, and stays.

    Raises:
        NotJson: it cannot be read.
    """
    for name in _SERVER_LISTS:
        entry = _get(wanted, name, _SERVER)
        there = _get(values_of(text), name, _SERVER) if entry is not None else None
        if there is not None and there != entry and _differs_in_interpreter(there, entry):
            text = remove_entries(text, {name: {_SERVER: there}}, {name: {}}, lambda _: False)
    return text


def _differs_in_interpreter(there: Any, entry: Any) -> bool:
    """Return whether an entry differs from ours in nothing but the interpreter."""
    if not is_table(there) or set(there) != set(entry):
        return False
    command, args = there.get("command"), there.get("args", [])
    words = [*(command if is_list(command) else [command]), *(args if is_list(args) else [])]
    others = (key for key in entry if key not in ("command", "args"))
    return words[1:] == server_words()[1:] and all(there[key] == entry[key] for key in others)


def _get(values: Any, *keys: str) -> Any:
    for key in keys:
        values = values.get(key) if is_table(values) else None
    return values


def _why_not_json(error: NotJson) -> str:
    why = str(error)
    return f"invalid JSON on {why}" if why.startswith("line ") else why


def _decode(content: bytes | None) -> str:
    try:
        text = (content or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise NotMergeable("it is not UTF-8") from None
    if "\0" in text:
        raise NotMergeable("it is not a text file")
    return text


def _lossy(content: bytes) -> str:
    return content.decode("utf-8", "replace")
