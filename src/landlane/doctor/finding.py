"""What a look at the repository found, for the doctor to tell."""

from __future__ import annotations

from landlane.values import value


@value
class Finding:
    """What a look found: whether all is well, in words, and what to do otherwise."""

    is_ok: bool
    found: str
    hint: str = ""
    is_enforced: bool = True
