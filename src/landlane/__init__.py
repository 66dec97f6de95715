"""Landlane: many coding agents, one repository, nothing lost."""

from __future__ import annotations

from landlane.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.api import *  # noqa: F403 - type checkers see all that `__getattr__` loads
    from landlane.api import __all__ as __all__


def __getattr__(name: str) -> object:
    """Load the library on first use: `import landlane` itself stays as light as a hook needs it."""
    if name[0].isupper() or name == "__all__":  # only modules and private names begin with another letter
        from landlane import api  # noqa: PLC0415 - `import landlane` stays light

        if name == "__all__" or name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from landlane import api  # noqa: PLC0415 - `import landlane` stays light

    return [*api.__all__, "__version__"]
