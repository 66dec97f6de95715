"""Errors as the JSON that every entry point answers with."""

from __future__ import annotations

import os

from landlane.clock import rfc3339
from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def error_json(error: Exception, wall_of: Callable[[int], int] | None = None) -> dict[str, Any]:
    """Return any error as JSON; `wall_of` turns the store's instants into calendar time."""
    error = as_landlane_error(error)
    facts = dict(error.facts)
    at = facts.pop("until_at", None)
    if at is not None and wall_of is not None:
        facts["until"] = rfc3339(wall_of(at))
    return failure_json(error.code, error.message, error.hint, **facts)


def failure_json(code: str, message: str, hint: str, **facts: object) -> dict[str, Any]:
    """Return the JSON of an answer that is not `ok`, whether an error or a refusal."""
    return {"ok": False, "code": code, "message": message, "hint": hint, **facts}


def as_landlane_error(error: Exception) -> LandlaneError:
    """Return an error with a code and a hint: the same one, or one for a system error or a bug."""
    if isinstance(error, LandlaneError):
        return error
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        hint = "check the disk, and what this user may read and write"
        return LandlaneError(f"{where}{error.strerror or error}", code="SYSTEM_REFUSED", hint=hint)
    raised_at = error.__traceback__
    assert raised_at is not None
    while raised_at.tb_next is not None:
        raised_at = raised_at.tb_next
    file = os.path.basename(raised_at.tb_frame.f_code.co_filename)
    return LandlaneError(
        f"{type(error).__name__}: {str(error)[:500]} ({file}:{raised_at.tb_lineno})",
        code="UNEXPECTED",
        hint="this is a mistake in landlane: please report it; `landlane doctor` checks the state",
    )
