"""Look up claims."""

from __future__ import annotations

from landlane.claims.model import LostClaim
from landlane.sessions.leases import sweep_if_due
from landlane.sessions.model import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot


def claims_of(snapshot: Snapshot, session: str) -> list[Claim]:
    """Return what a session holds, also claims whose lease has ended and that were not removed yet."""
    return Claim.from_rows(snapshot.all("claims_of", session=session))


def live_claims_of(snapshot: Snapshot, session: str) -> list[Claim]:
    """Return what a session holds now."""
    return [claim for claim in claims_of(snapshot, session) if not claim.is_over(snapshot.now)]


def claims_of_task(snapshot: Snapshot, session: str, task: str) -> list[Claim]:
    """Return the live claims that a session holds for a task."""
    return [claim for claim in live_claims_of(snapshot, session) if claim.task == task]


def claims_near(snapshot: Snapshot, alternatives: Sequence[Alternative], session: str) -> list[Claim]:
    """Return the claims that may overlap these alternatives; those of the session below them are left out."""
    return Claim.from_rows(snapshot.near("claims_near", alternatives, session))


def lost_claims(snapshot: Snapshot, agent: str) -> list[LostClaim]:
    """Return the claims that an agent lost and has not taken again, oldest first."""
    return [LostClaim.from_row(row) for row in snapshot.all("lapsed_of", agent=agent)]


def find_lost_claim(snapshot: Snapshot, agent: str, pattern: str) -> LostClaim | None:
    """Return the claim on this pattern that an agent lost."""
    row = snapshot.one("lapsed_get", agent=agent, pattern=pattern)
    return LostClaim.from_row(row) if row is not None else None


def list_claims(repo: Repository, patterns: Sequence[Pattern] = ()) -> list[Claim]:
    """Return the live claims, oldest first: all of them, or those that overlap one of these patterns."""

    def look(snapshot: Snapshot) -> list[Claim]:
        if not patterns:
            claims = Claim.from_rows(snapshot.all("claims_all"))
            return [claim for claim in claims if not claim.is_over(snapshot.now)]
        found = {
            claim.token: claim
            for pattern in patterns
            for claim in claims_near(snapshot, pattern.alternatives, "")
            if not claim.is_over(snapshot.now) and claim.overlaps(pattern)
        }
        return [found[token] for token in sorted(found)]

    sweep_if_due(repo.store)
    return repo.store.view(look)
