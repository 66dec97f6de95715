"""What the values of the library have in common: a readable repr, and whether the answer is a yes.

A no is false, and its `unwrap()` raises: `if landlane.claim("a.py"): …` is as safe as
`landlane.claim("a.py").unwrap()`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, cast

from landlane.errors import LandlaneError
from landlane.values import as_dict

if TYPE_CHECKING:
    from typing import Literal, NoReturn, Self


class Record:
    """A value of the library; its repr leaves out what is empty."""

    __slots__ = ()

    def __repr__(self) -> str:
        given = {name: item for name, item in as_dict(self).items() if item not in ("", None, (), [], {})}
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(item)}' for name, item in given.items())})"


def _shown(item: object) -> str:
    if isinstance(item, datetime):
        return item.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(item, timedelta):
        return str(item)
    if isinstance(item, Enum):
        return repr(item.value)
    if isinstance(item, tuple):
        parts = [_shown(part) for part in cast("tuple[object, ...]", item)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return repr(item)


class Success(Record):
    """An answer that is a yes; `unwrap()` returns it."""

    __slots__ = ()

    def __bool__(self) -> Literal[True]:
        return True

    def unwrap(self) -> Self:
        """Return this answer."""
        return self


class Failure(Record):
    """An answer that is a no: it is false, and `unwrap()` raises its `error()`."""

    __slots__ = ()

    def __bool__(self) -> Literal[False]:
        return False

    def error(self) -> LandlaneError:
        """Return the error with the same code, message and hint."""
        raise NotImplementedError

    def unwrap(self) -> NoReturn:
        """Raise the error."""
        raise self.error()


class Outcome(Record):
    """An answer that is a yes or a no, depending on its state."""

    __slots__ = ()

    def error(self) -> LandlaneError | None:
        """Return the error that `unwrap()` raises; None for a yes."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return self.error() is None

    def unwrap(self) -> Self:
        """Return this answer.

        Raises:
            LandlaneError: the answer is a no.
        """
        error = self.error()
        if error is not None:
            raise error
        return self
