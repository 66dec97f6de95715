"""Read a call's arguments: they match the tool's schema, or the model gets an error it can fix."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.mcp.tool_schemas import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LONGEST_TEXT = 100_000
_MOST_ITEMS = 1_000
_LARGEST = 2**53
_DEEPEST = 40


def read_arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call.

    Raises:
        Malformed: there is no such tool, or they are not what it takes.
    """
    tool = BY_NAME.get(name)
    if tool is None:
        raise Malformed(
            f"there is no tool {name[:40]!r}", code="UNKNOWN_TOOL", hint=f"one of {', '.join(BY_NAME)}"
        )
    schema = tool["inputSchema"]
    known: dict[str, Any] = schema["properties"]
    for key in given:
        if key not in known:
            takes = f"{name} takes {', '.join(known)}" if known else f"{name} takes nothing"
            raise _bad(f"{name} has no argument {str(key)[:40]!r}", takes)
    read = {key: _read(key, known[key], item) for key, item in given.items() if item is not None}
    for key in schema.get("required", ()):
        if key not in read:
            raise _bad(f"{name} needs {key}", f"give {key}")
    return read


def _read(key: str, schema: Mapping[str, Any], item: Any) -> Any:
    if "enum" in schema:
        if item not in schema["enum"]:
            raise _bad(f"{key} is not {_shown(item)}", f"one of {', '.join(schema['enum'])}")
        return item
    kind = schema.get("type", "")
    if kind == "string":
        return _text(key, item)
    if kind == "integer":
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < _LARGEST:
            raise _bad(f"{key} is not a whole number: {_shown(item)}", "give a number such as 30")
        return item
    if kind == "boolean":
        if not isinstance(item, bool):
            raise _bad(f"{key} is not true or false: {_shown(item)}", "give true or false")
        return item
    if kind == "array":
        return _texts(key, item)
    _check_depth(key, item)
    return item


def _text(key: str, item: Any) -> str:
    if not isinstance(item, str):
        raise _bad(f"{key} is not a text: {_shown(item)}", f'give {key} as a string, such as "T7"')
    if len(item) > _LONGEST_TEXT:
        raise _bad(
            f"{key} has {len(item):,} characters", f"{_LONGEST_TEXT:,} are the most; name a file instead"
        )
    if "\0" in item or any("\ud800" <= letter <= "\udfff" for letter in item):
        raise _bad(f"{key} holds what is not text", "give plain text")
    return item


def _texts(key: str, item: Any) -> tuple[str, ...]:
    if not _is_list(item):
        raise _bad(f"{key} is not a list: {_shown(item)}", f'give {key} as a list, such as ["src/api.py"]')
    some: list[Any] = item
    if not some or len(some) > _MOST_ITEMS:
        raise _bad(f"{key} has {len(some):,} items", f"give 1 to {_MOST_ITEMS:,}")
    return tuple(_text(f"an item of {key}", one) for one in some)


def _check_depth(key: str, item: Any) -> None:
    """Refuse values that are nested too deeply to be serialized."""
    layer: list[Any] = [item]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for one in layer:
            below += one.values() if _is_table(one) else one if _is_list(one) else ()
        if not below:
            return
        layer = below
    raise _bad(f"{key} is nested too deeply", f"at most {_DEEPEST} levels")


def _is_list(item: object) -> bool:
    return isinstance(item, list)


def _is_table(item: object) -> bool:
    return isinstance(item, dict)


def _shown(item: Any) -> str:
    return repr(item)[:40] if isinstance(item, (str, int, float, bool)) else f"a {type(item).__name__}"


def _bad(message: str, hint: str) -> Malformed:
    return Malformed(message, code="BAD_ARGUMENTS", hint=hint)
