"""Errors for a session that uses a claim it does not hold, or holds no more."""

from __future__ import annotations

from shlex import quote

from landlane.claims.describe import claim_command, describe_claims, held_text, how_to_get
from landlane.claims.model import LostClaim
from landlane.claims.take import claims_near, find_lost_claim, lost_claims
from landlane.errors import Held, LandlaneError, Stale
from landlane.units import rough_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


def token_error(snapshot: Snapshot, token: int, pattern: Pattern, session: Session | None) -> Stale:
    """Return the error for a token whose claim has ended."""
    lost = lost_claims(snapshot, session.agent) if session is not None else []
    ended = next((claim.ended_at for claim in lost if claim.token == token), None)
    age = f" {rough_duration(snapshot.now - ended)} ago" if ended is not None else ""
    holder = _find_holder(snapshot, session.id if session is not None else "", pattern)
    now_held = f", and {holder.agent} holds {pattern.text} now" if holder is not None else ""
    return Stale(
        f"token {token} is stale; that claim ended{age}{now_held}",
        code="LEASE_OVER",
        hint=claim_command(pattern) + (" --wait" if holder is not None else ""),
        pattern=pattern.text,
        **holder_facts(holder),
    )


def ended_error(snapshot: Snapshot, repo: Repository, session: Session, claim: Claim) -> Stale:
    """Return the error for a claim that ended between a check and the write that it was checked for."""
    pattern = repo.git.pattern_of(claim.pattern, claim.kind)
    lost = [one for one in lost_claims(snapshot, session.agent) if one.token == claim.token]
    if not lost and not claim.is_over(snapshot.now):  # released or handed on
        return token_error(snapshot, claim.token, pattern, session)
    ended_at = lost[0].ended_at if lost else claim.until
    ended = LostClaim(
        agent=claim.agent,
        pattern=claim.pattern,
        kind=claim.kind,
        mode=claim.mode,
        ttl_ms=claim.ttl_ms,
        token=claim.token,
        ended_at=ended_at,
    )
    holder = _find_holder(snapshot, session.id, pattern)
    return lease_error(ended, snapshot.now, holder, {"pattern": claim.pattern, **holder_facts(holder)})


def _find_holder(snapshot: Snapshot, session: str, pattern: Pattern) -> Claim | None:
    """Return a live claim of another session that overlaps a pattern."""
    near = claims_near(snapshot, pattern.alternatives, session)
    others = (claim for claim in near if claim.session != session and not claim.is_over(snapshot.now))
    return next((claim for claim in others if claim.overlaps(pattern)), None)


def not_held_error(tx: Snapshot, repo: Repository, session: Session, pattern: Pattern) -> LandlaneError:
    """Return the error for a claim that has lapsed, that another session holds, or that never existed."""
    holder = _find_holder(tx, session.id, pattern)
    facts = {"pattern": pattern.text, **holder_facts(holder)}
    lost = find_lost_claim(tx, session.agent, pattern.text)
    if lost is not None:
        return lease_error(lost, tx.now, holder, facts)
    if holder is not None:
        (holding,) = describe_claims(tx, [holder])
        return Held(
            held_text(pattern.text, holding, repo.store, tx.now),
            code="CLAIM_HELD",
            hint=how_to_get(pattern, holding, len(holding.waiting) + 1),
            **facts,
        )
    return LandlaneError(
        f"{session.agent} has not claimed {pattern.text}",
        code="NOT_HELD",
        hint=f"landlane claims {quote(pattern.text)}",
        **facts,
    )


def holder_facts(holder: Claim | None) -> dict[str, object]:
    """Return who holds a path, as fields of an error."""
    if holder is None:
        return {}
    return {"holder": holder.agent, "until_at": holder.until, "task": holder.task}


def lease_error(lost: LostClaim, now: int, holder: Claim | None, facts: dict[str, object]) -> Stale:
    """Return the error for a claim whose lease has ended, with the session that has claimed it since."""
    since = ""
    if holder is not None:
        what = "it" if holder.pattern == lost.pattern else holder.pattern
        since = f", and {holder.agent} has claimed {what} since"
    return Stale(
        f"your claim on {lost.pattern} ended {rough_duration(now - lost.ended_at)} ago{since}",
        code="LEASE_OVER",
        hint="save your version first: landlane rescue take"
        if holder is not None
        else f"claim it again: landlane claim {quote(lost.pattern)}",
        **facts,
    )
