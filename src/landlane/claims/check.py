"""Whether a session may change a path now."""

from __future__ import annotations

from landlane.claims.model import Claim
from landlane.claims.read import list_claims, token_over
from landlane.patterns.pattern import covers_alternative
from landlane.sessions.read import find_ancestors
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session


@value
class Standing:
    """Whether a session may change a path now: `held`, `free`, `unclaimed`, `required` or `other`."""

    path: str
    state: str
    claim: Claim | None = None


def check(repo: Repository, session: Session | None, pattern: Pattern, token: int | None = None) -> Standing:
    """Whether this session may change this path now.

    Raises:
        Stale: the token shown belongs to a grant that is over.
    """
    near = list_claims(repo, (pattern,))
    mine = [
        claim
        for claim in near
        if session is not None and claim.session == session.id and claim.covers(pattern)
    ]
    # Whoever has no session any more has lost its grants with it.
    if token is not None and all(claim.token != token for claim in mine):
        raise token_over(session, pattern.text)
    if mine:
        return Standing(path=pattern.text, state="held", claim=mine[-1])
    # What the session itself holds nearby, say a glob that could match below this path, is not in its way.
    others = [claim for claim in near if session is None or claim.session != session.id]
    if others and session is not None:
        kin = repo.store.view(lambda snapshot: find_ancestors(snapshot, session.id))
        others = [claim for claim in others if claim.session not in kin]
    if others:
        return Standing(path=pattern.text, state="other", claim=others[0])
    if _is_listed(repo, repo.settings.claims.free, pattern):
        return Standing(path=pattern.text, state="free")
    if _is_listed(repo, repo.settings.claims.required, pattern):
        return Standing(path=pattern.text, state="required")
    return Standing(path=pattern.text, state="unclaimed")


def _is_listed(repo: Repository, listed: Sequence[str], pattern: Pattern) -> bool:
    known = [repo.git.pattern_of(text, "glob") for text in listed]
    return any(
        any(covers_alternative(mine, wanted) for mine in one.alternatives)
        for one in known
        for wanted in pattern.alternatives
    )
