"""What is held: listing, checking, renewing and releasing claims that were taken before."""

from __future__ import annotations

from landlane.claims.model import Claim, Refused, Request, Taken, areas_of, ends_at
from landlane.claims.take import ancestors_of, identity, is_over, living, take_in
from landlane.errors import Held, LandlaneError, Stale
from landlane.patterns.pattern import Branch, branches_overlap, covers_branch
from landlane.sessions.leases import sweep_if_due
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.take import Identity
    from landlane.context import Context
    from landlane.patterns.pattern import Pattern
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading, Row


def claim_from(row: Row) -> Claim:
    """A claim from its row."""
    return Claim(
        token=row[2],
        pattern=row[3],
        kind=row[4],
        mode=row[5],
        session=row[6],
        agent=row[7],
        task=row[8],
        note=row[9],
        ttl_ms=row[10],
        granted_at=row[11],
        until=ends_at(row[11], row[12], row[10]),
    )


def live_claims(rows: Sequence[Row], now: int) -> list[Claim]:
    """The claims among these rows that stand, each once."""
    found: dict[int, Claim] = {}
    for row in rows:
        if not is_over(row, now):
            found.setdefault(row[2], claim_from(row))
    return list(found.values())


def held_by(reading: Reading, session: str) -> dict[Identity, list[Claim]]:
    """What a session holds now, by what makes its patterns the same; one may be held in both modes."""
    rows = reading.all("claims_of", session=session)
    branches: dict[int, set[tuple[str, str | None]]] = {}
    for row in rows:
        branches.setdefault(row[2], set()).add((row[0], row[1]))
    found: dict[Identity, list[Claim]] = {}
    for claim in live_claims(rows, reading.now):
        found.setdefault(frozenset(branches[claim.token]), []).append(claim)
    return found


def list_claims(context: Context, patterns: Sequence[Pattern] = ()) -> list[Claim]:
    """All live claims in the order of their grants, or only those that overlap one of these patterns."""

    def look(reading: Reading) -> list[Claim]:
        if not patterns:
            return live_claims(reading.all("claims_all"), reading.now)
        rows = [
            row
            for pattern in patterns
            for row in reading.near("claims_near", pattern.branches, "")
            if any(branches_overlap(branch, Branch(key=row[0], rest=row[1])) for branch in pattern.branches)
        ]
        return sorted(live_claims(rows, reading.now), key=lambda claim: claim.token)

    sweep_if_due(context.store)
    return context.store.view(look)


@value
class Standing:
    """Whether a session may change a path now: `held`, `free`, `unclaimed`, `required` or `other`."""

    path: str
    state: str
    claim: Claim | None = None


def check(context: Context, session: Session | None, pattern: Pattern, token: int | None = None) -> Standing:
    """Whether this session may change this path now.

    Raises:
        Stale: the token shown belongs to a grant that is over.
    """
    near = list_claims(context, (pattern,))
    mine = [
        claim
        for claim in near
        if session is not None and claim.session == session.id and _covers(claim, pattern, context)
    ]
    # Whoever has no session any more has lost its grants with it.
    if token is not None and all(claim.token != token for claim in mine):
        raise token_over(session, pattern.text)
    if mine:
        return Standing(path=pattern.text, state="held", claim=mine[-1])
    # What the session itself holds nearby, say a glob that could match below this path, is not in its way.
    others = [claim for claim in near if session is None or claim.session != session.id]
    if others and session is not None:
        kin = context.store.view(lambda reading: ancestors_of(reading, session.id))
        others = [claim for claim in others if claim.session not in kin]
    if others:
        return Standing(path=pattern.text, state="other", claim=others[0])
    if _is_listed(context, context.settings.claims_free, pattern):
        return Standing(path=pattern.text, state="free")
    if _is_listed(context, context.settings.claims_required, pattern):
        return Standing(path=pattern.text, state="required")
    return Standing(path=pattern.text, state="unclaimed")


def _covers(claim: Claim, pattern: Pattern, context: Context) -> bool:
    held = context.repository.pattern_of(claim.pattern, claim.kind)
    return all(any(covers_branch(mine, wanted) for mine in held.branches) for wanted in pattern.branches)


def _is_listed(context: Context, listed: Sequence[str], pattern: Pattern) -> bool:
    known = [context.repository.pattern_of(text, "glob") for text in listed]
    return any(
        any(covers_branch(mine, wanted) for mine in one.branches)
        for one in known
        for wanted in pattern.branches
    )


def release(
    context: Context,
    session: Session,
    patterns: Sequence[Pattern] | None,
    *,
    commit: str = "",
    token: int | None = None,
) -> tuple[str, ...]:
    """Give claims back, all of the session's or just these; all of them or none.

    Raises:
        Stale: a lease was over, or the session is.
        LandlaneError: one of them is not held.
    """

    def work(tx: Change) -> tuple[str, ...]:
        living(tx, session)
        held = held_by(tx, session.id)
        if patterns is None and not held:
            _refuse_sleeper(tx, session)
        chosen = held.values() if patterns is None else [_held(tx, session, held, one) for one in patterns]
        claims = [claim for same in chosen for claim in _of_token(same, token, session)]
        for claim in claims:
            if tx.run("claim_drop", session=session.id, token=claim.token):
                # Given back by its own will: that it once lapsed is no reason to have it again by `renew`.
                tx.run("lapsed_drop", agent=session.agent, pattern=claim.pattern)
                facts: dict[str, object] = {"pattern": claim.pattern, "token": claim.token}
                tx.record(
                    "claim.released",
                    session.agent,
                    session.id,
                    facts | ({"commit": commit} if commit else {}),
                )
                tx.frees = True
        return tuple(dict.fromkeys(claim.pattern for claim in claims))

    return context.change(work)


def _refuse_sleeper(tx: Reading, session: Session) -> None:
    """Tell a session that holds nothing any more, because its leases ran out, that it does not."""
    lost = [row for row in tx.all("lapsed_of", agent=session.agent) if row[5] >= session.started_at]
    if lost:
        raise Stale(
            f"the lease of {session.agent} on {lost[-1][0]} is over, and nothing else is held",
            code="LEASE_OVER",
            hint="look at what changed meanwhile, then claim anew before changing anything",
            pattern=lost[-1][0],
        )


def _held(tx: Reading, session: Session, held: dict[Identity, list[Claim]], pattern: Pattern) -> list[Claim]:
    claims = held.get(identity(pattern))
    if claims is None:
        raise not_held(tx, session, pattern)
    return claims


def _of_token(claims: list[Claim], token: int | None, session: Session) -> list[Claim]:
    """The grants on one pattern that are meant: all, or the one with this token."""
    meant = [claim for claim in claims if token in (None, claim.token)]
    if not meant:
        raise token_over(session, claims[0].pattern)
    return meant


def renew(context: Context, session: Session, patterns: Sequence[Pattern] | None) -> Taken:
    """Renew claims, all or just these. One whose lease was over is judged anew, as any newcomer's.

    Raises:
        Stale: a lease was over and another session holds it now, or the session is over.
        LandlaneError: one of them was never held.
    """

    def work(tx: Change) -> Taken:
        me = living(tx, session)
        held = held_by(tx, session.id)
        if patterns is None and not held:
            _refuse_sleeper(tx, me)
        if patterns is None:
            return Taken(granted=tuple(_renew_one(tx, me, claim) for same in held.values() for claim in same))
        granted: list[Claim] = []
        for pattern in patterns:
            claims = held.get(identity(pattern))
            if claims:
                granted += [_renew_one(tx, me, claim) for claim in claims]
            else:
                granted.append(_readmit(tx, context, me, pattern))
        return Taken(granted=tuple(granted))

    return context.change(work, areas=areas_of(patterns) if patterns else None)


def _renew_one(tx: Change, me: Session, claim: Claim) -> Claim:
    tx.run("claim_renew", session=me.id, token=claim.token, ttl_ms=claim.ttl_ms)
    return replace(claim, granted_at=tx.now, until=tx.now + claim.ttl_ms)


def _readmit(tx: Change, context: Context, me: Session, pattern: Pattern) -> Claim:
    lost = tx.one("lapsed_get", agent=me.agent, pattern=pattern.text)
    if lost is None:
        raise not_held(tx, me, pattern)
    request = Request(patterns=(pattern,), mode=lost[2], ttl_ms=lost[3])
    outcome = take_in(tx, context, me, request)
    if isinstance(outcome, Refused):
        raise not_held(tx, me, pattern)
    tx.run("lapsed_drop", agent=me.agent, pattern=pattern.text)
    return outcome.granted[0]


def token_over(session: Session | None, pattern: str) -> Stale:
    """The caller shows the token of a grant that is over."""
    whose = f" of {session.agent}" if session is not None else ""
    return Stale(
        f"the grant{whose} on {pattern} that this token belongs to is over",
        code="LEASE_OVER",
        hint="look at what changed meanwhile, then go on with the token of the newest grant",
        pattern=pattern,
    )


def not_held(tx: Reading, session: Session, pattern: Pattern) -> LandlaneError:
    """Why a session cannot use a claim: it lapsed, another holds it, or it never was."""
    near = tx.near("claims_near", pattern.branches, session.id)
    others = [
        row
        for row in near
        if row[6] != session.id
        and not is_over(row, tx.now)
        and any(branches_overlap(branch, Branch(key=row[0], rest=row[1])) for branch in pattern.branches)
    ]
    holder = others[0] if others else None
    lost = tx.one("lapsed_get", agent=session.agent, pattern=pattern.text)
    facts: dict[str, object] = {"pattern": pattern.text}
    if holder is not None:
        facts |= {
            "holder": holder[7],
            "until_at": ends_at(holder[11], holder[12], holder[10]),
            "task": holder[8],
        }
    if lost is not None:
        now_held = f"; {holder[7]} holds {holder[3]} now" if holder is not None else ""
        return Stale(
            f"the lease of {session.agent} on {pattern.text} is over{now_held}",
            code="LEASE_OVER",
            hint="look at what changed meanwhile, then claim it anew before changing anything",
            **facts,
        )
    if holder is not None:
        return Held(
            f"{pattern.text} is held by {holder[7]}, not by {session.agent}",
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
