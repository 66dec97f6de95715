"""List claims, and look up those of one session."""

from __future__ import annotations

from landlane.claims.model import LostClaim
from landlane.errors import Held, LandlaneError, Stale
from landlane.sessions.leases import sweep_if_due
from landlane.sessions.model import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Identity
    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
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


def held_by(snapshot: Snapshot, session: str) -> dict[Identity, list[Claim]]:
    """Return what a session holds now, by pattern; one pattern may be held in both modes."""
    found: dict[Identity, list[Claim]] = {}
    for claim in live_claims_of(snapshot, session):
        found.setdefault(frozenset(claim.alternatives), []).append(claim)
    return found


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


def refuse_sleeper(tx: Snapshot, session: Session) -> None:
    """Tell a session that holds nothing any more, because its leases ran out, that it does not."""
    lost = [claim for claim in lost_claims(tx, session.agent) if claim.ended_at >= session.started_at]
    if lost:
        raise Stale(
            f"the lease of {session.agent} on {lost[-1].pattern} is over, and nothing else is held",
            code="LEASE_OVER",
            hint="look at what changed meanwhile, then claim anew before changing anything",
            pattern=lost[-1].pattern,
        )


def token_over(session: Session | None, pattern: str) -> Stale:
    """The caller shows the token of a grant that is over."""
    whose = f" of {session.agent}" if session is not None else ""
    return Stale(
        f"the grant{whose} on {pattern} that this token belongs to is over",
        code="LEASE_OVER",
        hint="look at what changed meanwhile, then go on with the token of the newest grant",
        pattern=pattern,
    )


def not_held(tx: Snapshot, session: Session, pattern: Pattern) -> LandlaneError:
    """Why a session cannot use a claim: it lapsed, another holds it, or it never was."""
    holder = next(
        (
            claim
            for claim in claims_near(tx, pattern.alternatives, session.id)
            if claim.session != session.id and not claim.is_over(tx.now) and claim.overlaps(pattern)
        ),
        None,
    )
    facts: dict[str, object] = {"pattern": pattern.text}
    if holder is not None:
        facts |= {"holder": holder.agent, "until_at": holder.until, "task": holder.task}
    if find_lost_claim(tx, session.agent, pattern.text) is not None:
        now_held = f"; {holder.agent} holds {holder.pattern} now" if holder is not None else ""
        return Stale(
            f"the lease of {session.agent} on {pattern.text} is over{now_held}",
            code="LEASE_OVER",
            hint="look at what changed meanwhile, then claim it anew before changing anything",
            **facts,
        )
    if holder is not None:
        return Held(
            f"{pattern.text} is held by {holder.agent}, not by {session.agent}",
            code="CLAIM_HELD",
            hint="`landlane claims` shows who holds what",
            **facts,
        )
    return LandlaneError(
        f"{session.agent} holds no claim on {pattern.text}",
        code="NOT_HELD",
        hint="name a pattern exactly as it was granted; `landlane claims` lists them",
        **facts,
    )
