"""Check that a session's live claims cover the paths that it changed."""

from __future__ import annotations

import os
import shlex

from landlane.claims.check import check
from landlane.claims.read import held_by, lost_claims
from landlane.errors import Held, NotAllowed, PatternError, Stale
from landlane.patterns.pattern import has_special
from landlane.sessions.model import covers_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


def cover(repo: Repository, session: Session, paths: Sequence[str]) -> list[Claim]:
    """The session's live claims that cover these paths; what is free needs none.

    Raises:
        NotAllowed: one is not claimed.
        Held: another session holds one.
        Stale: the lease on one is over.
    """
    held = repo.store.view(lambda snapshot: held_by(snapshot, session.id))
    mine = [claim for same in held.values() for claim in same]
    used: dict[int, Claim] = {}
    for path in paths:
        wanted = pattern_of(repo, path)
        covering = [claim for claim in mine if claim.covers(wanted)]
        if covering:
            newest = max(covering, key=lambda claim: claim.token)
            used[newest.token] = newest
        else:
            _judge_uncovered(repo, session, path, wanted)
    return list(used.values())


def _judge_uncovered(repo: Repository, session: Session, path: str, wanted: Pattern) -> None:
    standing = check(repo, session, wanted)
    if standing.state in ("held", "free"):
        return
    holder = standing.claim
    facts: dict[str, object] = {"path": path}
    if holder is not None:
        facts |= {"holder": holder.agent, "until_at": holder.until, "task": holder.task or None}
    if lost := repo.store.view(lambda snapshot: _lapsed(repo, snapshot, session, wanted)):
        now_held = f"; {holder.agent} holds {holder.pattern} now" if holder is not None else ""
        raise Stale(
            f"the lease of {session.agent} on {lost} is over{now_held}",
            code="LEASE_OVER",
            hint="look at what changed meanwhile, then claim it anew before committing anything",
            **facts,
        )
    if holder is not None:
        raise Held(
            f"{path} is held by {holder.agent}: it is not {session.agent}'s to commit",
            code="CLAIM_HELD",
            hint="leave it out; `landlane claims` shows who holds what",
            **facts,
        )
    raise NotAllowed(
        f"{path} has changed, but {session.agent} holds no claim on it",
        code="NOT_CLAIMED",
        hint=f"if the change is yours: {_how_to_claim(repo, path)}; else leave it out",
        **facts,
    )


def _lapsed(repo: Repository, snapshot: Snapshot, session: Session, wanted: Pattern) -> str:
    """What this agent held over this path and lost, without having taken it again."""
    for lost in lost_claims(snapshot, session.agent):
        if covers_all(repo.git.pattern_of(lost.pattern, lost.kind).alternatives, wanted):
            return lost.pattern
    return ""


def _how_to_claim(repo: Repository, path: str) -> str:
    if os.path.islink(os.path.join(repo.git.root, path)):
        # A link as typed means what it leads to; a glob means the link itself.
        folder, _, name = path.rpartition("/")
        return shlex.join(["landlane", "claim", f":/{folder}{'/' if folder else ''}[{name[0]}]{name[1:]}"])
    return shlex.join(["landlane", "claim", f":/{path}", *(["--literal"] if has_special(path) else [])])


def pattern_of(repo: Repository, path: str) -> Pattern:
    """What must be held to change a path: itself, or its folder where the name can be in no pattern."""
    while True:
        try:
            return repo.git.pattern_of(path or ".", "literal")
        except PatternError:
            path = os.path.dirname(path)
