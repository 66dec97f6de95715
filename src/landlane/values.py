"""Frozen value classes that cost almost nothing to define: `dataclasses` without its import of `inspect`.

A hook or `landlane claim` runs in a fresh process each time, and importing `dataclasses` alone costs more
than the claim itself. `@value` gives the part of it that this project uses: keyword-only construction,
slots, equality, hash, a readable repr, and refusal to change. Type checkers see an ordinary frozen dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol, TypeVar, dataclass_transform

    T = TypeVar("T")

    class Row(Protocol):
        """A row of a result: `row["column"]`, or `dict(row)` for all of it."""

        def __getitem__(self, name: str, /) -> Any: ...

        def keys(self) -> Iterable[str]: ...

else:
    Row = object

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """Return the decorator unchanged; only type checkers use it."""
        return lambda decorated: decorated


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(cls: type[T]) -> type[T]:
    """Turn an annotated class body into a frozen, slotted, keyword-only value class."""
    names = [name for name in cls.__dict__.get("__annotations__", {}) if not name.startswith("_")]
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    body = {
        key: item
        for key, item in cls.__dict__.items()
        if key not in defaults and key not in ("__dict__", "__weakref__")
    }
    body["__slots__"] = tuple(names)
    body["_fields"] = tuple(names)
    made: Any = type(cls)(cls.__name__, cls.__bases__, body)
    _give_methods(made, names, defaults)
    return made


def _give_methods(made: Any, names: list[str], defaults: dict[str, object]) -> None:
    """Compile `__init__`, `__eq__` and `__hash__` for these fields in one go."""
    parameters = ", ".join(f"{name}=_default_{name}" if name in defaults else name for name in names)
    # The slot descriptors' own setters bypass the refusing __setattr__, and are faster than
    # object.__setattr__.
    sets = "\n".join(f"    _set_{name}(self, {name})" for name in names) or "    pass"
    this = ", ".join(f"self.{name}" for name in names) + ("," if names else "")
    that = ", ".join(f"other.{name}" for name in names) + ("," if names else "")
    source = (
        f"def __init__(self{', *, ' + parameters if names else ''}):\n{sets}\n"
        f"def __eq__(self, other):\n"
        f"    return ({this}) == ({that}) if other.__class__ is self.__class__ else NotImplemented\n"
        f"def __hash__(self):\n    return hash(({this}))\n"
    )
    space: dict[str, Any] = {f"_set_{name}": made.__dict__[name].__set__ for name in names}
    space |= {f"_default_{name}": default for name, default in defaults.items()}
    exec(source, space)  # noqa: S102 - the text is made of field names only
    for name in ("__init__", "__eq__", "__hash__"):
        setattr(made, name, space[name])
    if made.__repr__ is object.__repr__:  # neither the class nor a base has its own
        made.__repr__ = _repr
    made.__setattr__ = made.__delattr__ = _refuse_change
    made.__match_args__ = ()
    made.__reduce__ = _reduce


def replace(item: T, **changes: object) -> T:
    """Return the same value with some fields changed."""
    return item.__class__(**{**as_dict(item), **changes})


def as_dict(item: object) -> dict[str, Any]:
    """Return the fields of a value as a dict, in order; nested values stay values."""
    fields: tuple[str, ...] = getattr(item.__class__, "_fields")  # noqa: B009 - no type checker knows of it
    return {name: getattr(item, name) for name in fields}


def from_columns(cls: type[T], columns: Row | Mapping[str, Any], **others: object) -> T:
    """Return a value whose fields are the columns of the same names, except those that are given."""
    fields: tuple[str, ...] = getattr(cls, "_fields")  # noqa: B009 - no type checker knows of it
    return cls(**{name: others[name] if name in others else columns[name] for name in fields})


def _repr(self: object) -> str:
    inside = ", ".join(f"{name}={item!r}" for name, item in as_dict(self).items())
    return f"{self.__class__.__name__}({inside})"


def _refuse_change(self: object, name: str, *_: object) -> None:
    raise AttributeError(f"{self.__class__.__name__}.{name} cannot be changed: values are frozen")


def _rebuild(cls: type, fields: dict[str, Any]) -> object:
    return cls(**fields)


def _reduce(self: object) -> tuple[object, ...]:
    return _rebuild, (self.__class__, as_dict(self))
