"""Taking whole tables out of a TOML text; every other line stays as it is."""

from __future__ import annotations

import tomllib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def drop_tables(text: str, is_unwanted: Callable[[tuple[str, ...]], bool]) -> str:
    """The text without the tables whose keys are unwanted, and the blank line before each.

    A comment below a table's last line belongs to what follows, and stays.

    Raises:
        ValueError: it is not valid TOML, or would not be without them.
    """
    tomllib.loads(text.removeprefix("\ufeff"))
    kept: list[str] = []
    is_dropping = False
    for line in text.splitlines(keepends=True):
        keys = _header(line)
        if keys:
            is_dropping = is_unwanted(keys)
            if is_dropping and kept and not kept[-1].strip():
                kept.pop()
        elif is_dropping and line.lstrip().startswith("#"):
            is_dropping = False
        if not is_dropping:
            kept.append(line)
    found = "".join(kept)
    tomllib.loads(found.removeprefix("\ufeff"))
    return found


def _header(line: str) -> tuple[str, ...]:
    """The keys of a line that begins a table; none for any other line."""
    if not line.startswith("[") or line.startswith("[["):
        return ()
    try:
        found: object = tomllib.loads(line)
    except ValueError:
        return ()
    keys: list[str] = []
    while isinstance(found, dict) and found:
        key = next(iter(found))  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        keys.append(str(key))  # pyright: ignore[reportUnknownArgumentType]
        found = found[key]  # pyright: ignore[reportUnknownVariableType]
    return tuple(keys)
