"""Renew claims."""

from __future__ import annotations

from landlane.claims.model import Claim, Request, Taken
from landlane.claims.read import find_lost_claim, held_by, not_held, refuse_sleeper
from landlane.claims.refusal_model import Refused
from landlane.claims.take import identity, living, take_in
from landlane.store.lock_areas import areas_of
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction


def renew(repo: Repository, session: Session, patterns: Sequence[Pattern] | None) -> Taken:
    """Renew claims, all or just these. One whose lease was over is judged anew, as any newcomer's.

    Raises:
        Stale: a lease was over and another session holds it now, or the session is over.
        LandlaneError: one of them was never held.
    """

    def work(tx: Transaction) -> Taken:
        me = living(tx, session)
        held = held_by(tx, session.id)
        if patterns is None and not held:
            refuse_sleeper(tx, me)
        if patterns is None:
            return Taken(granted=tuple(_renew_one(tx, me, claim) for same in held.values() for claim in same))
        granted: list[Claim] = []
        for pattern in patterns:
            claims = held.get(identity(pattern))
            if claims:
                granted += [_renew_one(tx, me, claim) for claim in claims]
            else:
                granted.append(_readmit(tx, repo, me, pattern))
        return Taken(granted=tuple(granted))

    return repo.change(work, areas=areas_of(patterns) if patterns else None)


def _renew_one(tx: Transaction, me: Session, claim: Claim) -> Claim:
    tx.run("claim_renew", session=me.id, token=claim.token, ttl_ms=claim.ttl_ms)
    return replace(claim, granted_at=tx.now, until=tx.now + claim.ttl_ms)


def _readmit(tx: Transaction, repo: Repository, me: Session, pattern: Pattern) -> Claim:
    lost = find_lost_claim(tx, me.agent, pattern.text)
    if lost is None:
        raise not_held(tx, me, pattern)
    request = Request(patterns=(pattern,), mode=lost.mode, ttl_ms=lost.ttl_ms)
    outcome = take_in(tx, repo, me, request)
    if isinstance(outcome, Refused):
        raise not_held(tx, me, pattern)
    tx.run("lapsed_drop", agent=me.agent, pattern=pattern.text)
    return outcome.granted[0]
