"""List claims, and look up those of one session."""

from __future__ import annotations

from landlane.claims.model import Claim
from landlane.claims.take import is_over
from landlane.errors import Held, LandlaneError, Stale
from landlane.patterns.pattern import Alternative, alternatives_overlap
from landlane.sessions.leases import sweep_if_due
from landlane.sessions.model import ends_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.take import Identity
    from landlane.context import Context
    from landlane.patterns.pattern import Pattern
    from landlane.sessions.model import Session
    from landlane.store.interface import Reading, Row


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
            for row in reading.near("claims_near", pattern.alternatives, "")
            if any(
                alternatives_overlap(branch, Alternative(key=row[0], rest=row[1]))
                for branch in pattern.alternatives
            )
        ]
        return sorted(live_claims(rows, reading.now), key=lambda claim: claim.token)

    sweep_if_due(context.store)
    return context.store.view(look)


def refuse_sleeper(tx: Reading, session: Session) -> None:
    """Tell a session that holds nothing any more, because its leases ran out, that it does not."""
    lost = [row for row in tx.all("lapsed_of", agent=session.agent) if row[5] >= session.started_at]
    if lost:
        raise Stale(
            f"the lease of {session.agent} on {lost[-1][0]} is over, and nothing else is held",
            code="LEASE_OVER",
            hint="look at what changed meanwhile, then claim anew before changing anything",
            pattern=lost[-1][0],
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


def not_held(tx: Reading, session: Session, pattern: Pattern) -> LandlaneError:
    """Why a session cannot use a claim: it lapsed, another holds it, or it never was."""
    near = tx.near("claims_near", pattern.alternatives, session.id)
    others = [
        row
        for row in near
        if row[6] != session.id
        and not is_over(row, tx.now)
        and any(
            alternatives_overlap(branch, Alternative(key=row[0], rest=row[1]))
            for branch in pattern.alternatives
        )
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
