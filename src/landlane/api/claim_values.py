"""Values of the library: claims and refusals, sessions, the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landlane.api.results import Failure, Outcome, Record, Success
from landlane.claims.check import PathState
from landlane.errors import Held, NotAllowed
from landlane.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta
    from typing import Any

    from landlane.claims.model import SavedWork
    from landlane.errors import LandlaneError
    from landlane.patterns.pattern import PatternKind
    from landlane.sessions.model import ClaimMode, SessionKind


@value
class Claim(Record):
    """A session's right to change what a pattern names, until its lease ends, under a fencing token."""

    pattern: str
    kind: PatternKind
    mode: ClaimMode
    agent: str
    session: str
    token: int
    granted_at: datetime
    until: datetime
    ttl: timedelta
    task: str
    note: str


@value
class Holding(Record):
    """A claim that is in the way: its task's title, the kind of its holder, and who waits for it."""

    claim: Claim
    title: str
    kind: SessionKind
    waiting: tuple[str, ...]


@value
class Refusal(Record):
    """Why one pattern was not granted: who holds or waits for it, until when, and what to do instead.

    `holders` has every claim in the way; `holder` and the fields below it are about the first.
    """

    pattern: str
    holder: str
    session: str
    held: str
    mode: ClaimMode
    task: str
    note: str
    since: datetime
    until: datetime
    is_waiting: bool
    hint: str
    holders: tuple[Holding, ...]
    waiting: tuple[str, ...]
    position: int


@value
class Taken(Success):
    """The claims that were granted; for a partial request, also what was refused."""

    granted: tuple[Claim, ...]
    refused: tuple[Refusal, ...]
    saved: SavedWork | None
    waited: timedelta


class ClaimRefused(Held):
    """Claims are held by others; `refused` lists who holds what."""

    def __init__(self, outcome: Refused) -> None:
        first = outcome.refused[0]
        super().__init__(
            outcome.message, code=outcome.code, hint=outcome.hint, holder=first.holder, until=first.until
        )
        self.refused = outcome.refused
        self.cycle = outcome.cycle


@value
class Refused(Failure):
    """Nothing was granted. `code` says whether it is held, the wait was too short, or would never end."""

    code: str
    message: str
    hint: str
    refused: tuple[Refusal, ...]
    cycle: tuple[str, ...]
    free: tuple[str, ...]
    waited: timedelta

    def error(self) -> ClaimRefused:
        """Return the error that `unwrap()` raises."""
        return ClaimRefused(self)


@value
class PathCheck(Outcome):
    """Whether this session may change a path now, and the claim that decides it."""

    path: str
    state: PathState
    claim: Claim | None

    def error(self) -> LandlaneError | None:
        """Return `Held` for another's claim, `NotAllowed` for a path that must be claimed first."""
        if self.state is PathState.OTHER and self.claim is not None:
            holder, until = self.claim.agent, self.claim.until
            message, hint = (
                f"{self.path} is claimed by {holder}",
                f"wait for it: claim({self.path!r}, wait='10m')",
            )
            return Held(message, code="CLAIM_HELD", hint=hint, holder=holder, until=until)
        if self.state is PathState.REQUIRED:
            message = f"{self.path} is not claimed, and [claims] required lists it"
            return NotAllowed(message, code="CLAIM_REQUIRED", hint=f"claim({self.path!r})")
        return None


@value
class Session(Record):
    """One run of an agent or person, from joining to leaving."""

    id: str
    agent: str
    kind: SessionKind
    role: str
    machine: str
    generation: int
    started_at: datetime
    seen_at: datetime
    lease: timedelta
    lease_ends_at: datetime
    ended_at: datetime | None


@value
class Entry(Record):
    """One entry of the journal."""

    position: int
    at: datetime
    kind: str
    agent: str
    session: str
    data: Mapping[str, Any]
    hash: str


@value
class JournalCheck(Record):
    """The result of checking the journal; it is false if the journal was changed, as `trouble` says."""

    entries: int
    head: str
    trouble: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.trouble
