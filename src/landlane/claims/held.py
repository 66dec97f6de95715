"""Renew and release the claims that a session holds."""

from __future__ import annotations

from landlane.claims.model import Refused, Request, Taken
from landlane.claims.read import claims_near, find_lost_claim, live_claims_of, lost_claims
from landlane.claims.take import identity, take_in
from landlane.errors import Held, LandlaneError, Stale
from landlane.patterns.pattern import areas_of
from landlane.sessions.leases import require_live
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from landlane.claims.model import Claim, Identity
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction


def held_by(snapshot: Snapshot, session: str) -> dict[Identity, list[Claim]]:
    """Return what a session holds now, by pattern; one pattern may be held in both modes."""
    held: dict[Identity, list[Claim]] = {}
    for claim in live_claims_of(snapshot, session):
        held.setdefault(frozenset(claim.alternatives), []).append(claim)
    return held


def release(
    repo: Repository,
    session: Session,
    patterns: Sequence[Pattern] | None,
    *,
    commit: str = "",
    token: int | None = None,
) -> tuple[str, ...]:
    """Release claims, all of the session's or just these; all of them or none. Return their patterns.

    Raises:
        Stale: a lease has ended, or the session has.
        LandlaneError: one of them is not held.
    """

    def work(tx: Transaction) -> tuple[str, ...]:
        require_live(tx, session)
        held = held_by(tx, session.id)
        if patterns is None and not held:
            _refuse_lapsed(tx, session)
        chosen = list(held.values())
        if patterns is not None:
            chosen = [
                held.get(identity(pattern)) or _raise_not_held(tx, session, pattern) for pattern in patterns
            ]
        claims = [claim for same in chosen for claim in _of_token(same, token, session)]
        for claim in claims:
            if tx.run("claim_drop", session=session.id, token=claim.token):
                # `renew` must not take again what the session released itself.
                tx.run("lapsed_drop", agent=session.agent, pattern=claim.pattern)
                facts: dict[str, object] = {"pattern": claim.pattern, "token": claim.token}
                facts |= {"commit": commit} if commit else {}
                tx.record("claim.released", session.agent, session.id, facts)
                tx.frees = True
        return tuple(dict.fromkeys(claim.pattern for claim in claims))

    return repo.change(work)


def _of_token(claims: list[Claim], token: int | None, session: Session) -> list[Claim]:
    """Return the claims on one pattern that are meant: all, or the one with this token."""
    meant = [claim for claim in claims if token in (None, claim.token)]
    if not meant:
        raise token_over(session, claims[0].pattern)
    return meant


def renew(repo: Repository, session: Session, patterns: Sequence[Pattern] | None) -> Taken:
    """Renew claims, all or just these. One whose lease has ended is taken again if it is free.

    Raises:
        Stale: a lease has ended and another session holds it now, or the session has ended.
        LandlaneError: one of them was never held.
    """

    def work(tx: Transaction) -> Taken:
        me = require_live(tx, session)
        held = held_by(tx, session.id)
        if patterns is None and not held:
            _refuse_lapsed(tx, me)
        if patterns is None:
            return Taken(granted=tuple(_renew_one(tx, me, claim) for same in held.values() for claim in same))
        granted: list[Claim] = []
        for pattern in patterns:
            claims = held.get(identity(pattern))
            if claims:
                granted += [_renew_one(tx, me, claim) for claim in claims]
            else:
                granted.append(_take_again(tx, repo, me, pattern))
        return Taken(granted=tuple(granted))

    return repo.change(work, areas=areas_of(patterns) if patterns else None)


def _renew_one(tx: Transaction, me: Session, claim: Claim) -> Claim:
    tx.run("claim_renew", session=me.id, token=claim.token, ttl_ms=claim.ttl_ms)
    return replace(claim, granted_at=tx.now, until=tx.now + claim.ttl_ms)


def _take_again(tx: Transaction, repo: Repository, me: Session, pattern: Pattern) -> Claim:
    lost = find_lost_claim(tx, me.agent, pattern.text)
    if lost is None:
        _raise_not_held(tx, me, pattern)
    request = Request(patterns=(pattern,), mode=lost.mode, ttl_ms=lost.ttl_ms)
    outcome = take_in(tx, repo, me, request)
    if isinstance(outcome, Refused):
        _raise_not_held(tx, me, pattern)
    tx.run("lapsed_drop", agent=me.agent, pattern=pattern.text)
    return outcome.granted[0]


def _refuse_lapsed(tx: Snapshot, session: Session) -> None:
    """Refuse a session that holds nothing because all its leases have ended."""
    lost = [claim for claim in lost_claims(tx, session.agent) if claim.ended_at >= session.started_at]
    if lost:
        raise Stale(
            f"the lease of {session.agent} on {lost[-1].pattern} is over, and nothing else is held",
            code="LEASE_OVER",
            hint="look at what changed meanwhile, then claim anew before changing anything",
            pattern=lost[-1].pattern,
        )


def token_over(session: Session | None, pattern: str) -> Stale:
    """Return the error for a token whose claim has ended."""
    whose = f" of {session.agent}" if session is not None else ""
    return Stale(
        f"the grant{whose} on {pattern} that this token belongs to is over",
        code="LEASE_OVER",
        hint="look at what changed meanwhile, then go on with the token of the newest grant",
        pattern=pattern,
    )


def _raise_not_held(tx: Snapshot, session: Session, pattern: Pattern) -> NoReturn:
    """Refuse to use a claim that has lapsed, that another session holds, or that never existed."""
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
        raise Stale(
            f"the lease of {session.agent} on {pattern.text} is over{now_held}",
            code="LEASE_OVER",
            hint="look at what changed meanwhile, then claim it anew before changing anything",
            **facts,
        )
    if holder is not None:
        raise Held(
            f"{pattern.text} is held by {holder.agent}, not by {session.agent}",
            code="CLAIM_HELD",
            hint="`landlane claims` shows who holds what",
            **facts,
        )
    raise LandlaneError(
        f"{session.agent} holds no claim on {pattern.text}",
        code="NOT_HELD",
        hint="name a pattern exactly as it was granted; `landlane claims` lists them",
        **facts,
    )
