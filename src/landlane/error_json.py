"""An error as the JSON that every entry point answers with."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def failure(error: LandlaneError, wall_of: Callable[[int], int] | None = None) -> dict[str, Any]:
    """Return an error as JSON; `wall_of` turns the store's instants into calendar time."""
    facts = dict(error.facts)
    at = facts.pop("until_at", None)
    if at is not None and wall_of is not None:
        facts["until"] = rfc3339(wall_of(at))
    return {**failed(error.code, error.message, error.hint), **facts}


def failed(code: str, message: str, hint: str) -> dict[str, Any]:
    """Return a failure without further facts."""
    return {"ok": False, "code": code, "message": message, "hint": hint}
