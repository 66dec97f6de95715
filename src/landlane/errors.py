"""All errors: each has a stable code, a message, a hint and the exit code of its family.

    LandlaneError                  1  failed
    ├── Malformed                  2  the call cannot be understood; nothing was changed
    │   ├── PatternError              a pattern or path that cannot be claimed
    │   └── SettingsError             landlane.toml has an unknown or invalid setting
    ├── Held                       3  another session holds it
    ├── Stale                      4  the caller's lease, version, generation or base is no longer current
    ├── TimedOut                   5  waited as long as was allowed
    ├── NotAllowed                 6  a role, rule, the sandbox or a missing secret forbids it
    ├── WaitsForPerson             7  a person must decide
    ├── RepositoryError            1  no repository, or one that cannot be used
    └── StoreError                 1  the store cannot be opened, read or written
        ├── StoreCorrupt              not a store, truncated or damaged
        └── StoreTransient            may work when tried again

A conflict over a claim is not an error but a result (`claims.model.Refused`); `Held` is for callers that
asked for an exception instead, such as the context managers of the library.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LandlaneError(Exception):
    """An operation failed; the message and the hint let a person or a model act on it."""

    exit_code = 1

    def __init__(self, message: str, *, code: str, hint: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.facts = facts


class Malformed(LandlaneError):
    """The call itself is wrong; nothing was changed."""

    exit_code = 2


class PatternError(Malformed):
    """A pattern or path that cannot be claimed."""


class SettingsError(Malformed):
    """The settings contain something unknown or invalid."""


class Held(LandlaneError):
    """Another session holds it."""

    exit_code = 3


class Stale(LandlaneError):
    """The caller's lease, version, generation or base is no longer current."""

    exit_code = 4


class TimedOut(LandlaneError):
    """The wait was longer than the caller allowed."""

    exit_code = 5


class NotAllowed(LandlaneError):
    """A role, a rule, the sandbox or a missing secret forbids it."""

    exit_code = 6


class WaitsForPerson(LandlaneError):
    """A person must decide."""

    exit_code = 7


class RepositoryError(LandlaneError):
    """There is no repository here, or one that cannot be used."""


class StoreError(LandlaneError):
    """The store cannot be opened, read or written."""


class StoreCorrupt(StoreError):
    """The file is not a store, or is damaged."""


class StoreTransient(StoreError):
    """The store failed temporarily: the same change can be tried again."""
