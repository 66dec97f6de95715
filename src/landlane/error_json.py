"""An error as the JSON that every entry point answers with."""

from __future__ import annotations

from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.app.open import House


def failure(error: LandlaneError, house: House | None = None) -> dict[str, Any]:
    """An error as every door tells it, with the store's instants as everybody's."""
    facts = dict(error.facts)
    at = facts.pop("until_at", None)
    if at is not None and house is not None:
        from landlane.clock import rfc3339

        facts["until"] = rfc3339(house.store.wall_of(at))
    return {**facts, **failed(error.code, error.message, error.hint)}


def failed(code: str, message: str, hint: str) -> dict[str, Any]:
    return {"ok": False, "code": code, "message": message, "hint": hint}
