"""Check whether a session may change a path, and whether its claims cover the paths that it changed."""

from __future__ import annotations

import os
import shlex
from enum import StrEnum

from landlane.claims.agent_locks import find_agent_locks
from landlane.claims.describe import describe_holder
from landlane.claims.not_held import holder_facts, lease_error, token_error
from landlane.claims.take import list_claims, live_claims_of, lost_claims
from landlane.errors import Held, NotAllowed, PatternError
from landlane.patterns.pattern import covers_all, covers_alternative, has_special, reads_as_name
from landlane.sessions.leases import find_ancestors
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim, LostClaim
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import ClaimSettings


class PathState(StrEnum):
    """Whether a session may change a path."""

    HELD = "held"  # by the session itself
    OTHER = "other"  # held by another session
    FREE = "free"  # needs no claim
    REQUIRED = "required"  # must be claimed first, and is not
    UNCLAIMED = "unclaimed"


@value
class PathCheck:
    """Whether a session may change a path now, and the claim that decides it."""

    path: str
    state: PathState
    claim: Claim | None = None


def check(repo: Repository, session: Session | None, pattern: Pattern, token: int | None = None) -> PathCheck:
    """Return whether this session may change this path now.

    Raises:
        Stale: the token belongs to a claim that has ended.
    """
    near = list_claims(repo, (pattern,))
    others, mine = near, []
    if session is not None:
        mine = [claim for claim in near if claim.session == session.id and claim.covers(pattern)]
        # What the session itself holds nearby, such as a glob that could match below this path, is not in
        # its way.
        others = [claim for claim in near if claim.session != session.id]
    # A caller without a session has lost its claims with it.
    if token is not None and all(claim.token != token for claim in mine):
        raise repo.store.view(lambda snapshot: token_error(snapshot, token, pattern, session))
    if mine:
        return PathCheck(path=pattern.text, state=PathState.HELD, claim=mine[-1])
    if others and session is not None:
        ancestors = repo.store.view(lambda snapshot: find_ancestors(snapshot, session.id))
        others = [claim for claim in others if claim.session not in ancestors]
    others = others or find_agent_locks(repo, (pattern,))
    if others:
        return PathCheck(path=pattern.text, state=PathState.OTHER, claim=others[0])
    return PathCheck(path=pattern.text, state=claim_need(repo, repo.settings.claims, pattern))


def claim_need(repo: Repository, settings: ClaimSettings, pattern: Pattern) -> PathState:
    """Return whether a path that no other session holds needs a claim: `REQUIRED`, `FREE` or `UNCLAIMED`.

    Where the settings list what needs a claim, everything else is free; that list wins over `free`.
    """
    if _is_listed(repo, settings.required, pattern):
        return PathState.REQUIRED
    if settings.required or _is_listed(repo, settings.free, pattern):
        return PathState.FREE
    return PathState.UNCLAIMED


def needs_no_claim(repo: Repository, settings: ClaimSettings, path: str) -> bool:
    """Return whether a path relative to the root may be changed without a claim."""
    return claim_need(repo, settings, pattern_of(repo, path)) == PathState.FREE


def _is_listed(repo: Repository, listed: Sequence[str], pattern: Pattern) -> bool:
    known = [repo.git.pattern_of(text, "glob") for text in listed]
    return any(
        covers_alternative(mine, wanted)
        for one in known
        for mine in one.alternatives
        for wanted in pattern.alternatives
    )


def find_covering(repo: Repository, session: Session, paths: Sequence[str]) -> list[Claim]:
    """Return the session's live claims that cover these paths; free paths need none.

    Raises:
        NotAllowed: one is not claimed.
        Held: another session holds one.
        Stale: the lease on one has ended.
    """
    mine = repo.store.view(lambda snapshot: live_claims_of(snapshot, session.id))
    used: dict[int, Claim] = {}
    for path in paths:
        wanted = pattern_of(repo, path)
        covering = [claim for claim in mine if claim.covers(wanted)]
        if covering:
            newest = max(covering, key=lambda claim: claim.token)
            used[newest.token] = newest
        else:
            _refuse_uncovered(repo, session, path, wanted)
    return list(used.values())


def _refuse_uncovered(repo: Repository, session: Session, path: str, wanted: Pattern) -> None:
    found = check(repo, session, wanted)
    if found.state in (PathState.HELD, PathState.FREE):
        return
    holder = found.claim
    facts = {"path": path, **holder_facts(holder)}
    if holder is not None:
        facts["task"] = holder.task or None
    if lost := find_lapsed(repo, session.agent, wanted):
        raise lease_error(lost, repo.store.view(lambda snapshot: snapshot.now), holder, facts)
    if holder is not None:
        raise Held(
            describe_holder(repo, path, holder),
            code="CLAIM_HELD",
            hint="leave it out of the commit; see who holds what: landlane claims",
            **facts,
        )
    raise NotAllowed(
        f"{path} has changes, but {session.agent} has not claimed it",
        code="NOT_CLAIMED",
        hint=f"claim it, or leave it out of the commit: {_how_to_claim(repo, path)}",
        **facts,
    )


def find_lapsed(repo: Repository, agent: str, wanted: Pattern) -> LostClaim | None:
    """Return a lost claim of an agent that covered this path."""
    for lost in repo.store.view(lambda snapshot: lost_claims(snapshot, agent)):
        if covers_all(repo.git.pattern_of(lost.pattern, lost.kind).alternatives, wanted):
            return lost
    return None


def _how_to_claim(repo: Repository, path: str) -> str:
    if os.path.islink(os.path.join(repo.git.root, path)):
        # A link as typed means its target; a glob means the link itself.
        folder, _, name = path.rpartition("/")
        return shlex.join(["landlane", "claim", f":/{folder}{'/' if folder else ''}[{name[0]}]{name[1:]}"])
    marker = "" if repo.git.is_at_root and not reads_as_name(path) else ":/"
    return shlex.join(["landlane", "claim", marker + path, *(["--literal"] if has_special(path) else [])])


def pattern_of(repo: Repository, path: str) -> Pattern:
    """Return what must be held to change a path: itself, or its folder if no pattern can contain its name."""
    while True:
        try:
            return repo.git.pattern_of(path or ".", "literal")
        except PatternError:
            path = os.path.dirname(path)
