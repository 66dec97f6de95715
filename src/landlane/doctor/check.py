"""The result of one of the doctor's checks."""

from __future__ import annotations

from landlane.values import value


@value
class Check:
    """The result of one check. `is_enforced` is false where the guarantee is only advisory."""

    is_ok: bool
    is_enforced: bool
    found: str
    hint: str = ""
    name: str = ""
    is_fixed: bool = False  # just now


def passed(found: str, hint: str = "", *, is_enforced: bool = True) -> Check:
    """Return the result of a check that passed."""
    return Check(is_ok=True, is_enforced=is_enforced, found=found, hint=hint)


def fixed(found: str, *, is_enforced: bool = True) -> Check:
    """Return the result of a check whose problem was just fixed."""
    return Check(is_ok=True, is_enforced=is_enforced, found=found, is_fixed=True)


def advisory(found: str, hint: str = "") -> Check:
    """Return the result of a check that passed, where nothing enforces what it is about."""
    return passed(found, hint, is_enforced=False)


def failed(found: str, hint: str = "") -> Check:
    """Return the result of a check that failed."""
    return Check(is_ok=False, is_enforced=False, found=found, hint=hint)
