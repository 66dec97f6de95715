"""Renew and release the claims that a session holds."""

from __future__ import annotations

from landlane.claims.model import Refused, Request, Taken
from landlane.claims.take import find_lost_claim, identity, live_claims_of, lost_claims, take_in
from landlane.patterns.pattern import areas_of
from landlane.sessions.leases import drop_claim, lock_live_session, require_live
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
                held.get(identity(pattern)) or _refuse(tx, repo, session, pattern) for pattern in patterns
            ]
        claims = [claim for same in chosen for claim in _of_token(tx, repo, same, token, session)]
        for claim in claims:
            if drop_claim(tx, session.id, claim.token):
                # `renew` must not take again what the session released itself.
                tx.run("lapsed_drop", agent=session.agent, pattern=claim.pattern)
                facts: dict[str, object] = {"pattern": claim.pattern, "token": claim.token}
                facts |= {"commit": commit} if commit else {}
                tx.record("claim.released", session.agent, session.id, facts)
                tx.has_freed = True
        return tuple(dict.fromkeys(claim.pattern for claim in claims))

    return repo.change(work)


def require_tokens(tx: Transaction, repo: Repository, session: Session, claims: Sequence[Claim]) -> None:
    """Check that the session still holds these claims under the same tokens, until the transaction ends.

    Every operation that waits after it looked at claims calls this in the transaction of its write: a lease
    may end while hooks, checks or editors run, or while the process is stopped or its machine asleep.

    Raises:
        Stale: one of them has ended, or belongs to another session.
    """
    live = lock_live_session(tx, session.id)
    held = [claim.token for claim in live_claims_of(tx, session.id)] if live is not None else []
    for claim in claims:
        if claim.token not in held:
            raise _errors().ended_error(tx, repo, session, claim)


def _errors():
    """Return the module that explains why a claim is not held."""
    from landlane.claims import not_held  # noqa: PLC0415 - most callers hold what they name

    return not_held


def _of_token(
    tx: Snapshot, repo: Repository, claims: list[Claim], token: int | None, session: Session
) -> list[Claim]:
    """Return the claims on one pattern that are meant: all, or the one with this token."""
    meant = [claim for claim in claims if token in (None, claim.token)]
    if not meant and token is not None:
        pattern = repo.git.pattern_of(claims[0].pattern, claims[0].kind)
        raise _errors().token_error(tx, token, pattern, session)
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
        _refuse(tx, repo, me, pattern)
    request = Request(patterns=(pattern,), mode=lost.mode, ttl_ms=lost.ttl_ms)
    outcome = take_in(tx, repo, me, request)
    if isinstance(outcome, Refused):
        _refuse(tx, repo, me, pattern)
    tx.run("lapsed_drop", agent=me.agent, pattern=pattern.text)
    return outcome.granted[0]


def _refuse(tx: Snapshot, repo: Repository, session: Session, pattern: Pattern) -> NoReturn:
    raise _errors().not_held_error(tx, repo, session, pattern)


def _refuse_lapsed(tx: Snapshot, session: Session) -> None:
    """Refuse a session that holds nothing because all its leases have ended."""
    lost = [claim for claim in lost_claims(tx, session.agent) if claim.ended_at >= session.started_at]
    if lost:
        raise _errors().lease_error(lost[-1], tx.now, None, {"pattern": lost[-1].pattern})
