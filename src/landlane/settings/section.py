"""The base class of all settings: a section of landlane.toml whose keys carry their own description.

A section is written once, as a class. Reading it, the reference page and the messages about mistakes all use
its keys. Every command builds these classes, so they must be cheap: a key is a descriptor that returns its
default unless the section was given another value, and it only names its reader.
"""

from __future__ import annotations

from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_: object) -> Any:
        """Do nothing: only type checkers use it."""
        return lambda decorated: decorated


ONE, OPTIONAL, NAMED, LISTED = "one", "optional", "named", "listed"  # how a section is nested

_REQUIRED: Any = object()
_UNITS = {"duration": "_ms", "lease": "_ms", "size": "_bytes", "US dollars": "_micros"}


class Key:
    """One key: its default, the name of its reader, a description, and the section nested in it, if any."""

    __slots__ = ("choices", "default", "field", "nested", "reader", "shape", "text")

    field: str

    def __init__(
        self,
        default: Any,
        reader: str,
        text: str,
        choices: tuple[str, ...] = (),
        nested: type[Section] | None = None,
        shape: str = "",
    ) -> None:
        self.default = default
        self.reader = reader
        self.text = text
        self.choices = choices
        self.nested = nested
        self.shape = shape

    def __set_name__(self, owner: type, name: str) -> None:
        self.field = name

    def __get__(self, section: object, owner: type | None = None) -> Any:
        if section is None:
            return self
        if self.default is _REQUIRED:
            raise AttributeError(self.field)
        return self.default

    @property
    def name(self) -> str:
        """The name in landlane.toml: that of the field, without its unit."""
        return self.field.removesuffix(_UNITS.get(self.reader, ""))

    @property
    def is_required(self) -> bool:
        return self.default is _REQUIRED

    def build(self, plain: Any) -> Any:
        """Return the value of this key from its plain form."""
        if self.nested is None or plain is None:
            return plain
        build = self.nested.from_plain
        if self.shape == NAMED:
            return {name: build(item) for name, item in plain.items()}
        return tuple(map(build, plain)) if self.shape == LISTED else build(plain)


def required(reader: str, text: str, choices: tuple[str, ...] = ()) -> Any:
    """Describe a key that its section cannot do without."""
    return Key(_REQUIRED, reader, text, choices)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(required,))
class Section:
    """A frozen value with a field for each key; `short` names the field that a plain text stands for."""

    _fields: ClassVar[tuple[str, ...]] = ()
    short: ClassVar[str] = ""

    def __init_subclass__(cls, short: str = "") -> None:
        cls._fields = tuple(cls.__dict__["__annotations__"])
        cls.short = short

    def __init__(self, **given: object) -> None:
        for field in given:
            if field not in self._fields:
                raise TypeError(f"{type(self).__name__} has no field {field!r}")
        self.__dict__.update(given)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Build a section from the plain form that the readers return and the cache stores."""
        section = cls.__new__(cls)
        keys = cls.__dict__
        section.__dict__.update({field: keys[field].build(item) for field, item in plain.items()})
        return section

    def __eq__(self, other: object) -> bool:
        return other.__class__ is self.__class__ and as_dict(self) == as_dict(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - some keys are tables

    def __repr__(self) -> str:
        given = ", ".join(f"{field}={item!r}" for field, item in self.__dict__.items())
        return f"{type(self).__name__}({given})"

    def __setattr__(self, field: str, _: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{field} cannot be changed: settings are frozen")


def key(default: T, reader: str, text: str, choices: tuple[str, ...] = ()) -> T:
    """Describe a key with a default."""
    return Key(default, reader, text, choices)  # pyright: ignore[reportReturnType] - a descriptor


def nested(described: type[Section], shape: str = ONE, text: str = "") -> Any:
    """Describe a key that holds a section, several of them under names, or a list of them."""
    default: Any = described() if shape == ONE else {} if shape == NAMED else None
    return Key(default, "table", text, (), described, shape)


def keys_of(described: type[Section]) -> dict[str, Key]:
    """Return the keys of a section by their names in landlane.toml."""
    return {one.name: one for one in described.__dict__.values() if isinstance(one, Key)}
