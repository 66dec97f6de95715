"""What init brings into a file, by the file's form: how it gets in, and how it is taken out again."""

from __future__ import annotations

import os

from landlane.clients.hook_command import is_ours
from landlane.clients.setup_files import JSON, TEXT, TOML, WHOLE
from landlane.managed_files.json_entries import MISSING, combine, take_out, values_of
from landlane.managed_files.mcp_servers import NotToml, put_table, without_older
from landlane.managed_files.text_block import HASHES, drop_block, drop_line, has_line, put_block, put_line
from landlane.managed_files.toml_tables import drop_tables
from landlane.merge.json_source import NotJson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LINE = "line"  # one line of a text file
IGNORED = "ignored"  # a marked block of a file whose comments begin with #
NEW = "new"  # a file that is written only where there is none, and belongs to the user from then on
OUTSIDE = "outside"  # a file that another program changes for us


class NotMergeable(Exception):
    """A file that cannot be changed without harm, and why."""


def bring_in(form: str, content: Any, there: bytes | None) -> bytes:
    """The file with what is wanted in it; one that has it already comes back as it is.

    Raises:
        NotMergeable: it cannot be read, or is somebody else's.
    """
    if form == JSON:
        return _encode(_combined(_decode(there), content))
    if form == TEXT:
        return _encode(put_block(_decode(there), content))
    if form == IGNORED:
        return _encode(put_block(_decode(there), content, HASHES))
    if form == TOML:
        try:
            return _encode(put_table(_decode(there), content))
        except NotToml as error:
            raise NotMergeable(str(error)) from None
    if form == LINE:
        text = _decode(there)
        names = (content, content.replace("@", "@./", 1))
        return _encode(text if has_line(text, *names) else put_line(text, content))
    if form == NEW:
        return _encode(content) if there is None else there
    if there is not None and there != _encode(content) and not is_ours(there.decode("utf-8", "replace")):
        raise NotMergeable("a file of that name is there already, and not ours")
    return _encode(content)


def take_back(form: str, content: Any, original: bytes | None, there: bytes) -> bytes | None:
    """The file without what was brought in, though somebody changed it since; None when nothing is left.

    Raises:
        NotMergeable: it cannot be told apart any more.
    """
    if form == JSON:
        text = _decode(there)
        try:
            before = MISSING if original is None else values_of(_decode(original))
            found = take_out(text, content, before, is_ours)
        except NotJson as error:
            raise NotMergeable(f"it is not valid JSON any more, {error}") from None
    elif form in (TEXT, IGNORED, TOML):
        found = drop_block(_decode(there), *((HASHES,) if form != TEXT else ()))
    elif form == LINE:
        found = drop_line(_decode(there), content)
    elif form == OUTSIDE:
        found = _without_trust(_decode(there), content, _decode(original))
    else:
        raise NotMergeable("it was changed since")
    is_nothing = found.strip("\ufeff \t\r\n") in ("", "{}")
    return None if original is None and is_nothing else _encode(found)


def _without_trust(text: str, root: str, original: str) -> str:
    """Codex's settings without what it noted for the hooks of this checkout."""
    hooks = os.path.join(root, ".codex/hooks.json:")
    project = ("projects", root)
    had_project = f'[projects."{root}"]' in original

    def is_unwanted(keys: tuple[str, ...]) -> bool:
        is_state = keys[:2] == ("hooks", "state") and keys[2:3] and keys[2].startswith(hooks)
        return bool(is_state) or (keys == project and not had_project)

    try:
        return drop_tables(text, is_unwanted)
    except ValueError as error:
        raise NotMergeable(f"it is not valid TOML: {error}") from None


def has_all(form: str, content: Any, there: bytes | None) -> bool:
    """Whether a file holds what is wanted, just as it would be written now."""
    try:
        return there is not None and bring_in(form, content, there) == there
    except NotMergeable:
        return False


def _combined(text: str, content: Any) -> str:
    try:
        return combine(without_older(text, content), content, is_ours)
    except NotJson as error:
        raise NotMergeable(f"it cannot be read as JSON, {error}") from None


def _decode(there: bytes | None) -> str:
    try:
        text = (there or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise NotMergeable("it is not UTF-8") from None
    if "\0" in text:
        raise NotMergeable("it is no text")
    return text


def _encode(text: str) -> bytes:
    return text.encode("utf-8")


__all__ = ["IGNORED", "JSON", "LINE", "NEW", "OUTSIDE", "TEXT", "TOML", "WHOLE", "NotMergeable"]
