"""The result of one of the doctor's checks."""

from __future__ import annotations

from landlane.values import value


@value
class Finding:
    """The result of a check: whether it passed, a description, and a hint."""

    is_ok: bool
    found: str
    hint: str = ""
    is_enforced: bool = True
