"""Landlane: many coding agents, one repository, nothing lost."""

from __future__ import annotations

from landlane.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.api import (
        Claim,
        ClaimRefused,
        Entry,
        JournalCheck,
        Landlane,
        LandlaneError,
        PathCheck,
        Refusal,
        Refused,
        Session,
        Taken,
    )


__all__ = [
    "Claim",
    "ClaimRefused",
    "Entry",
    "Landlane",
    "LandlaneError",
    "Refusal",
    "Refused",
    "Session",
    "PathCheck",
    "Taken",
    "JournalCheck",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Load the library on first use: `import landlane` itself stays as light as a hook needs it."""
    if name in __all__:
        from landlane import api  # noqa: PLC0415 - `import landlane` stays light

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
