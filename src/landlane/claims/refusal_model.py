"""What a refused claim is told: holder, until when, and what to do instead."""

from __future__ import annotations

from landlane.values import value


@value
class Refusal:
    """Why one pattern was not granted: who is in the way, until when, and what to do instead."""

    pattern: str
    holder: str
    session: str
    held: str
    mode: str
    task: str
    note: str
    since: int
    until: int
    is_waiting: bool
    hint: str


@value
class Refused:
    """Nothing was granted. `code` says whether it is held, waited for too long, or would never end."""

    refused: tuple[Refusal, ...]
    code: str = "CLAIM_HELD"
    cycle: tuple[str, ...] = ()
