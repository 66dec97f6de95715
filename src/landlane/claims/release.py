"""Release claims."""

from __future__ import annotations

from landlane.claims.model import Claim
from landlane.claims.read import held_by, not_held, refuse_sleeper, token_over
from landlane.claims.take import identity, living

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Identity
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction


def release(
    repo: Repository,
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

    def work(tx: Transaction) -> tuple[str, ...]:
        living(tx, session)
        held = held_by(tx, session.id)
        if patterns is None and not held:
            refuse_sleeper(tx, session)
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

    return repo.change(work)


def _held(tx: Snapshot, session: Session, held: dict[Identity, list[Claim]], pattern: Pattern) -> list[Claim]:
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
