"""Versioned state: keys, JSON values, reducers that combine updates, and rules that the settings make.

A key has a version that grows by one with each change. Who sets a value says which version it saw; who
appends names a reducer instead, which combines the new value with whatever stands there, so that nobody has
to look first and no update is lost.
"""

from __future__ import annotations

import json

from landlane.errors import Malformed, NotAllowed
from landlane.patterns.glob import read_glob
from landlane.patterns.glob_overlap import row_holds
from landlane.text import check_text
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.values import Row

    Rules = Mapping[str, Any]  # globs of keys and what holds for them; the first that fits counts


LONGEST_KEY = 200
VERSIONS_KEPT = 100
_KEY_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:")
_MOST_NESTING = 100
# The same order of keys as in the journal: a store built anew from it holds the same texts.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


@value
class State:
    """One version of one key: what it holds, and who wrote it when (milliseconds since 1970)."""

    key: str
    value: Any
    version: int
    agent: str
    session: str
    at: int
    reducer: str = ""

    @classmethod
    def from_row(cls, row: Row) -> State:
        return cls(
            key=row["key"],
            value=json.loads(row["value"]),
            version=row["version"],
            agent=row["agent"],
            session=row["session"],
            at=row["written_at"],
            reducer=row["reducer"],
        )


@value
class StateStale:
    """Nothing was written: the key stands at another version than the caller said; 0 when it is not there."""

    key: str
    expected: int | None
    version: int
    value: Any
    agent: str
    at: int
    hint: str
    code: str = "STATE_STALE"


def check_key(key: str, what: str = "key") -> str:
    """The key itself when it can be one.

    Raises:
        Malformed: it is empty, too long, or holds anything but letters, digits and `. _ - / :`.
    """
    if not key or len(key) > LONGEST_KEY or not _KEY_CHARACTERS.issuperset(key):
        raise Malformed(
            f"{key[:40]!r} cannot be a {what}",
            code="BAD_KEY",
            hint=f"use 1 to {LONGEST_KEY} letters, digits or . _ - / :",
        )
    return key


def check_prefix(prefix: str) -> str:
    """The beginning of keys; empty for all."""
    return check_key(prefix, "beginning of a key") if prefix else prefix


# ---------------------------------------------------------------------------------------------- values


def parse_value(text: str) -> Any:
    """The value that a text means: JSON, or the text itself where it is none."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)  # NaN and Infinity are no JSON

    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError:
        return text
    except RecursionError:
        raise _too_deep() from None


def encode_value(content: Any, max_bytes: int) -> str:
    """The one JSON text of a value.

    Raises:
        Malformed: it is no JSON, too large, or nested too deep.
    """
    if _is_deeper(content, _MOST_NESTING):
        raise _too_deep()
    try:
        text = _encode(content)
    except (TypeError, ValueError) as error:
        raise Malformed(
            f"the value cannot be written as JSON: {error}",
            code="BAD_VALUE",
            hint="use texts, finite numbers, true, false, null, lists and objects with texts as keys",
        ) from error
    check_text(text, "value", len(text))
    size = len(text.encode())
    if size > max_bytes:
        raise Malformed(
            f"the value has {size:,} bytes; {max_bytes:,} are the most",
            code="STATE_TOO_LARGE",
            hint="keep the content in a file and its path in the state, or raise [state] max_bytes",
        )
    return text


def _is_deeper(content: Any, levels: int) -> bool:
    """Whether lists and objects are nested more than so many levels deep."""
    if not isinstance(content, (list, tuple, dict)):
        return False
    inner: Any = content.values() if isinstance(content, dict) else content  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in inner)


def _too_deep() -> Malformed:
    return Malformed(
        f"the value is nested deeper than {_MOST_NESTING} levels",
        code="BAD_VALUE",
        hint="keep it in a file and its path in the state",
    )


# -------------------------------------------------------------------------------------------- reducers


def _append(old: Any, new: Any) -> Any:
    return [*_list(old, "append"), new]


def _union(old: Any, new: Any) -> Any:
    items: list[Any] = new if isinstance(new, list) else [new]  # pyright: ignore[reportUnknownVariableType]
    found = {_encode(item): item for item in _list(old, "union")}
    for item in items:
        found.setdefault(_encode(item), item)  # who came first keeps its place
    return list(found.values())


def _sum(old: Any, new: Any) -> Any:
    if not (_is_number(new) and (old is None or _is_number(old))):
        raise _mismatch("sum", "numbers", old, new)
    return new if old is None else old + new


def _max(old: Any, new: Any) -> Any:
    return new if old is None else max(_comparable("max", old, new))


def _min(old: Any, new: Any) -> Any:
    return new if old is None else min(_comparable("min", old, new))


def _merge(old: Any, new: Any) -> Any:
    if not _is_object(new) or not (old is None or _is_object(old)):
        raise _mismatch("merge", "objects", old, new)
    return _merged(old or {}, new)


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for name, content in new.items():
        before = merged.get(name)
        are_both = _is_object(before) and _is_object(content)
        merged[name] = _merged(before or {}, content) if are_both else content
    return merged


def _is_object(content: Any) -> bool:
    return isinstance(content, dict)


def _list(old: Any, reducer: str) -> list[Any]:
    if old is None:
        return []
    if not isinstance(old, list):
        raise _mismatch(reducer, "a list", old, None)
    return old  # pyright: ignore[reportUnknownVariableType]


def _comparable(reducer: str, old: Any, new: Any) -> tuple[Any, Any]:
    are_numbers = _is_number(old) and _is_number(new)
    if not are_numbers and not (isinstance(old, str) and isinstance(new, str)):
        raise _mismatch(reducer, "two numbers or two texts", old, new)
    return old, new


def _is_number(content: Any) -> bool:
    return isinstance(content, (int, float)) and not isinstance(content, bool)


def _mismatch(reducer: str, wanted: str, old: Any, new: Any) -> Malformed:
    shown = [_kind(item) for item in (old, new) if item is not None]
    return Malformed(
        f"{reducer} combines {wanted}, not {' and '.join(shown) or 'nothing'}",
        code="STATE_SHAPE",
        hint="`landlane state get KEY` shows what stands there; another reducer: --with",
    )


def _kind(content: Any) -> str:
    if isinstance(content, bool):
        return "true or false"
    if _is_number(content):
        return "a number"
    if isinstance(content, str):
        return "a text"
    return "a list" if isinstance(content, list) else "an object" if isinstance(content, dict) else "null"


REDUCERS: dict[str, Callable[[Any, Any], Any]] = {
    "append": _append,
    "union": _union,
    "max": _max,
    "min": _min,
    "sum": _sum,
    "merge": _merge,
}


def check_reducer(name: str) -> str:
    """The name itself when it is a reducer's.

    Raises:
        Malformed: there is no such reducer.
    """
    if name not in REDUCERS:
        raise Malformed(
            f"{name[:40]!r} is no reducer",
            code="BAD_REDUCER",
            hint=f"known: {', '.join(REDUCERS)}",
        )
    return name


def reduce(name: str, old: Any, new: Any) -> Any:
    """The value that stands there (nothing: None) and a new one, combined.

    Raises:
        Malformed: the two cannot be combined in this way.
    """
    return REDUCERS[name](old, new)


def check_shape(key: str, reducer: str, content: Any) -> None:
    """Refuse a plain value that the reducer of its key could never combine with the next one."""
    fits = {
        "append": isinstance(content, list),
        "union": isinstance(content, list),
        "sum": _is_number(content),
        "max": _is_number(content) or isinstance(content, str),
        "min": _is_number(content) or isinstance(content, str),
        "merge": isinstance(content, dict),
    }
    if not fits[reducer]:
        raise NotAllowed(
            f"{key} is combined by {reducer}; {_kind(content)} does not fit",
            code="STATE_REDUCER",
            hint=f"use `landlane state append {key} VALUE`, or set a value of that shape",
        )


def check_same_reducer(key: str, settled: str, wanted: str) -> None:
    """Refuse another reducer than the settings name for a key."""
    if wanted != settled:
        raise NotAllowed(
            f"{key} is combined by {settled}, not by {wanted}",
            code="STATE_REDUCER",
            hint="leave out --with; [state.reducers] in landlane.toml says how",
        )


# ----------------------------------------------------------------------------------------------- rules


def rule_for(key: str, rules: Rules) -> Any:
    """What the first rule that fits a key says; nothing when none does."""
    if not rules:
        return None
    names = tuple(key.split("/"))
    for glob, said in rules.items():
        if any(row_holds(row, names) for row in read_glob(glob)):
            return said
    return None


def check_owner(key: str, owner: str, agent: str, role: str) -> None:
    """Refuse anybody but the owner of a key: an agent, or whoever has a role.

    Raises:
        NotAllowed: another one owns it.
    """
    wanted_role = owner.removeprefix("role:")
    is_owner = role == wanted_role if wanted_role != owner else agent == owner
    if not is_owner:
        raise NotAllowed(
            f"only {owner} writes {key}",
            code="STATE_OWNED",
            hint=f"ask {owner} to write it, or keep your own under another key",
            owner=owner,
        )


def check_order(key: str, order: Sequence[Any], old: Any, new: Any) -> None:
    """Refuse to go back in a row of steps.

    Raises:
        NotAllowed: the new value stands before the old one, or is no step at all.
    """
    steps = [_encode(step) for step in order]
    shown = " → ".join(str(step) for step in order)
    if _encode(new) not in steps:
        raise NotAllowed(
            f"{_encode(new)[:60]} is no step of {key}",
            code="STATE_NO_STEP",
            hint=f"the steps are: {shown}",
        )
    at = steps.index(_encode(old)) if old is not None and _encode(old) in steps else -1
    if steps.index(_encode(new)) < at:
        raise NotAllowed(
            f"{key} stands at {_encode(old)[:60]} and does not go back to {_encode(new)[:60]}",
            code="STATE_GOES_BACK",
            hint=f"the steps go one way: {shown}",
        )
