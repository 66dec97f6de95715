"""Rules of versioned state: keys, JSON values, reducers, and the owners and orders of the settings.

A key has a version that grows by one with each change. A caller that sets a value names the version it read.
A caller that appends names a reducer instead, which combines the new value with the current one, so that no
update is lost and none has to be repeated.
"""

from __future__ import annotations

import json
import shlex

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

    Rules = Mapping[str, Any]  # the first glob that matches a key decides


LONGEST_KEY = 200
VERSIONS_KEPT = 100
_KEY_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:")
_MOST_NESTING = 100
# The same order of keys as in the journal: a store that is rebuilt from it holds the same texts.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


@value
class State:
    """One version of one key; `at` is in milliseconds since 1970."""

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


STALE_CODE = "STATE_STALE"


@value
class StateStale:
    """Nothing was written because the key has another version than expected; 0 if it does not exist."""

    key: str
    expected: int | None
    version: int
    value: Any
    agent: str
    at: int
    now: int = 0  # when it was refused
    hint: str
    code: str = STALE_CODE


def check_key(key: str, what: str = "key") -> str:
    """Return the key after checking it.

    Raises:
        Malformed: it is empty, too long, or holds anything but letters, digits and `. _ - / :`.
    """
    if not key or len(key) > LONGEST_KEY or not _KEY_CHARACTERS.issuperset(key):
        raise Malformed(
            f'"{key[:40]}" cannot be a {what}',
            code="BAD_KEY",
            hint=f"use 1 to {LONGEST_KEY} letters, digits or . _ - / :",
        )
    return key


def check_prefix(prefix: str) -> str:
    """Return the prefix after checking it; an empty one matches all keys."""
    return check_key(prefix, "prefix of keys") if prefix else prefix


def parse_value(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)  # NaN and Infinity are not JSON

    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError:
        return text
    except RecursionError:
        raise _too_deep() from None


def value_text(content: Any) -> str:
    """Return a value as people type it: a text as it is where that is not ambiguous, else as JSON."""
    if isinstance(content, str) and parse_value(content) == content:
        return content
    return json.dumps(content, ensure_ascii=False)


def encode_value(content: Any, max_bytes: int) -> str:
    """Return the canonical JSON text of a value.

    Raises:
        Malformed: it is not JSON, too large, or nested too deep.
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
            f"the value has {size:,} bytes, and at most {max_bytes:,} are allowed",
            code="STATE_TOO_LARGE",
            hint=f"keep it in a file and its path in the state, or allow more: "
            f"landlane config set state.max_bytes {size}",
        )
    return text


def _is_deeper(content: Any, levels: int) -> bool:
    """Return whether lists and objects are nested deeper than a limit."""
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


def _append(old: Any, new: Any) -> Any:
    return [*_list(old, "append"), new]


def _union(old: Any, new: Any) -> Any:
    items: list[Any] = new if isinstance(new, list) else [new]  # pyright: ignore[reportUnknownVariableType]
    found = {_encode(item): item for item in _list(old, "union")}
    for item in items:
        found.setdefault(_encode(item), item)  # an item keeps its first position
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
        hint="see the other ways to combine: landlane help state append",
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
    """Return the name of a reducer after checking it.

    Raises:
        Malformed: there is no such reducer.
    """
    if name not in REDUCERS:
        raise Malformed(
            f'unknown reducer "{name[:40]}"; use {", ".join(REDUCERS)}',
            code="BAD_REDUCER",
            hint="what each does: landlane help state append",
        )
    return name


def reduce(name: str, old: Any, new: Any) -> Any:
    """Return the current value (None if there is none) combined with a new one.

    Raises:
        Malformed: the two cannot be combined in this way.
    """
    return REDUCERS[name](old, new)


def check_not_overwritten(key: str, reducer: str, old: Any, new: Any) -> None:
    """Refuse a value that loses what an append-only or monotonic key holds.

    Raises:
        NotAllowed: the new value does not continue the old one.
    """
    keeps = {
        "append": lambda: new[: len(old)] == old,
        "union": lambda: {_encode(item) for item in old} <= {_encode(item) for item in new},
        "max": lambda: max(_comparable(reducer, old, new)) == new,
        "min": lambda: min(_comparable(reducer, old, new)) == new,
    }.get(reducer)
    if keeps is None or (type(old) is not type(new) and reducer in ("append", "union")) or keeps():
        return
    is_list = reducer in ("append", "union")
    text = shlex.quote(value_text(new))
    why = "is append-only" if is_list else f"only goes {'up' if reducer == 'max' else 'down'}"
    raise NotAllowed(
        f"{key} {why} ([state.reducers] {reducer}) and cannot be overwritten",
        code="STATE_APPEND_ONLY" if is_list else "STATE_GOES_BACK",
        hint=f"add to it: landlane state append {key} {text}; a person can overwrite it with --force",
    )


def check_shape(key: str, reducer: str, content: Any) -> None:
    """Refuse a value that the reducer of its key cannot combine with another one."""
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
            f"values of {key} are combined with {reducer}, which does not work with {_kind(content)}",
            code="STATE_REDUCER",
            hint=f"combine it instead: landlane state append {key} {shlex.quote(value_text(content))}",
        )


def check_same_reducer(key: str, settled: str, wanted: str) -> None:
    """Refuse a reducer other than the one in the settings."""
    if wanted != settled:
        raise NotAllowed(
            f"values of {key} are combined with {settled}, not with {wanted}",
            code="STATE_REDUCER",
            hint="leave out --with; the setting is: landlane config get state.reducers",
        )


def rule_for(key: str, rules: Rules) -> Any:
    """Return the value of the first rule that matches a key; None if no rule does."""
    if not rules:
        return None
    names = tuple(key.split("/"))
    for glob, rule in rules.items():
        if any(row_holds(row, names) for row in read_glob(glob)):
            return rule
    return None


def check_owner(key: str, owner: str, agent: str, role: str) -> None:
    """Refuse a caller that is neither the owning agent of a key nor has the owning role.

    Raises:
        NotAllowed: another agent or role owns it.
    """
    wanted_role = owner.removeprefix("role:")
    is_owner = role == wanted_role if wanted_role != owner else agent == owner
    if not is_owner:
        raise NotAllowed(
            f"only {owner} may write {key}",
            code="STATE_OWNED",
            hint=f"ask {owner} to set it; to read it: landlane state get {key}",
            owner=owner,
        )


def check_order(key: str, order: Sequence[Any], old: Any, new: Any) -> None:
    """Refuse a value that comes earlier in the configured order than the current one.

    Raises:
        NotAllowed: the new value comes before the old one, or is not in the order.
    """
    steps = [_encode(step) for step in order]
    shown = " → ".join(str(step) for step in order)
    if _encode(new) not in steps:
        raise NotAllowed(
            f"{key} cannot be {value_text(new)[:60]}; its values are {shown}",
            code="STATE_NO_STEP",
            hint=f"see where it is: landlane state get {key}",
        )
    at = steps.index(_encode(old)) if old is not None and _encode(old) in steps else -1
    if steps.index(_encode(new)) < at:
        raise NotAllowed(
            f"{key} is at {value_text(old)[:60]} and cannot go back to {value_text(new)[:60]} ({shown})",
            code="STATE_GOES_BACK",
            hint=f"see who set it: landlane state history {key}; a person can set it with --force",
        )
