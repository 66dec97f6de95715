"""Look up claims, and take them: check and grant in one transaction; a refusal names the holder."""

from __future__ import annotations

from landlane.claims.model import (
    LONGEST_NOTE,
    LostClaim,
    Refused,
    Request,
    Taken,
    check_request,
    find_conflict,
)
from landlane.errors import NotAllowed
from landlane.ids import token_of
from landlane.patterns.pattern import areas_of, covers_all
from landlane.sessions.extensions import installed
from landlane.sessions.leases import (
    drop_claim,
    end_if_gone,
    find_ancestors,
    find_session,
    lapse,
    renew_session,
    require_live,
    sweep_if_due,
)
from landlane.sessions.model import Claim, ClaimMode, Session, worker_task
from landlane.text import check_label, check_text
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Identity, Refusal
    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction

    Own = dict[tuple[Identity, ClaimMode], Claim]  # what a session holds already
    Obstacle = list[Claim]  # what others hold; empty if it is free, but others have waited longer


def claims_of(snapshot: Snapshot, session: str) -> list[Claim]:
    """Return what a session holds, also claims whose lease has ended and that were not removed yet."""
    return Claim.from_rows(snapshot.all("claims_of", session=session))


def live_claims_of(snapshot: Snapshot, session: str) -> list[Claim]:
    """Return what a session holds now."""
    return [claim for claim in claims_of(snapshot, session) if not claim.is_over(snapshot.now)]


def claims_of_task(snapshot: Snapshot, session: str, task: str) -> list[Claim]:
    """Return the live claims that a session holds for a task."""
    return [claim for claim in live_claims_of(snapshot, session) if claim.task == task]


def claims_near(snapshot: Snapshot, alternatives: Sequence[Alternative], session: str) -> list[Claim]:
    """Return the claims that may overlap these alternatives; those of the session below them are left out."""
    return Claim.from_rows(snapshot.near("claims_near", alternatives, session))


def lost_claims(snapshot: Snapshot, agent: str) -> list[LostClaim]:
    """Return the claims that an agent lost and has not taken again, oldest first."""
    return [LostClaim.from_row(row) for row in snapshot.all("lapsed_of", agent=agent)]


def list_lost_by_others(snapshot: Snapshot, agent: str) -> list[LostClaim]:
    """Return the claims that other agents lost and have not taken again, oldest first."""
    return [LostClaim.from_row(row) for row in snapshot.all("lapsed_of_others", agent=agent)]


def find_lost_claim(snapshot: Snapshot, agent: str, pattern: str) -> LostClaim | None:
    """Return the claim on this pattern that an agent lost."""
    row = snapshot.one("lapsed_get", agent=agent, pattern=pattern)
    return LostClaim.from_row(row) if row is not None else None


def list_claims(repo: Repository, patterns: Sequence[Pattern] = ()) -> list[Claim]:
    """Return the live claims, oldest first: all of them, or those that overlap one of these patterns."""

    def look(snapshot: Snapshot) -> list[Claim]:
        if not patterns:
            claims = Claim.from_rows(snapshot.all("claims_all"))
            return [claim for claim in claims if not claim.is_over(snapshot.now)]
        found = {
            claim.token: claim
            for pattern in patterns
            for claim in claims_near(snapshot, pattern.alternatives, "")
            if not claim.is_over(snapshot.now) and claim.overlaps(pattern)
        }
        return [found[token] for token in sorted(found)]

    sweep_if_due(repo.store)
    return repo.store.view(look)


def make_request(
    repo: Repository,
    patterns: tuple[Pattern, ...],
    *,
    mode: ClaimMode = ClaimMode.EXCLUSIVE,
    ttl_ms: int | None = None,
    task: str = "",
    note: str = "",
    is_partial: bool = False,
) -> Request:
    """Return a request that the settings allow.

    Raises:
        Malformed: the lease, the task or the note is not valid, or there is nothing to claim.
        NotAllowed: a path that is not mergeable cannot be shared.
    """
    settings = repo.settings
    if task:
        check_label(task, "task")
    request = Request(
        patterns=tuple({identity(pattern): pattern for pattern in patterns}.values()),
        mode=mode,
        ttl_ms=settings.claims.ttl_ms if ttl_ms is None else ttl_ms,
        task=task,
        note=check_text(note, "note", LONGEST_NOTE),
        is_partial=is_partial,
        may_shorten=ttl_ms is not None,
    )
    if mode is ClaimMode.SHARED and settings.claims.shareable is not None:
        _check_mergeable(repo, request)
    return check_request(request, max_ttl_ms=settings.claims.max_ttl_ms)


def _check_mergeable(repo: Repository, request: Request) -> None:
    mergeable = [
        alternative
        for text in repo.settings.mergeable_patterns
        for alternative in repo.git.pattern_of(text, "glob").alternatives
    ]
    for pattern in request.patterns:
        if not covers_all(mergeable, pattern):
            raise NotAllowed(
                f"{pattern.text} is not mergeable and cannot be shared",
                code="NOT_MERGEABLE",
                hint="claim it exclusively, or list it in [landing.merge.files] if its changes can be merged",
            )


def check_allowed(repo: Repository, session: Session, request: Request) -> None:
    """Refuse a request that is not valid or that the role of the session forbids.

    Raises:
        Malformed: it is not valid.
        NotAllowed: the role, or the task of a worker, does not allow this claim.
    """
    check_request(request, max_ttl_ms=repo.settings.claims.max_ttl_ms)
    if session.role:
        from landlane.roles.enforce import check_claim  # noqa: PLC0415 - most have no role

        check_claim(repo, session, request.patterns)
    if worker_task(session.agent):
        installed().check_worker_claim(repo, session, request.patterns, request.note)


def take(repo: Repository, session: Session, request: Request) -> Taken | Refused:
    """Take claims, or return who holds them.

    Raises:
        Stale: the session is over.
        NotAllowed: its role may not claim this.
    """
    check_allowed(repo, session, request)
    grant = repo.store.take_uncontested(
        session, request.patterns, request.mode, request.ttl_ms, request.task, request.note
    )
    if grant is None:
        return repo.change(
            lambda tx: _take_and_journal(tx, repo, session, request), areas=areas_of(request.patterns)
        )
    if grant.granted_at - grant.seen_at > session.shortest_ms // 3:
        renew_session(repo.store, session)
    granted = [
        claim_for(pattern, request, session, token, grant.granted_at)
        for pattern, token in zip(request.patterns, grant.tokens, strict=True)
    ]
    return Taken(granted=tuple(granted))


def _take_and_journal(
    tx: Transaction, repo: Repository, session: Session, request: Request
) -> Taken | Refused:
    outcome = take_in(tx, repo, session, request)
    if outcome.refused:
        from landlane.claims.journal_refusals import journal_refusals  # noqa: PLC0415 - most are granted

        journal_refusals(tx, session, outcome.refused)
    return outcome


def take_in(
    tx: Transaction, repo: Repository, session: Session, request: Request, ticket: int | None = None
) -> Taken | Refused:
    """Check and grant inside a transaction; `ticket` is the caller's place in the queue, if it has one."""
    me = require_live(tx, session)
    found, own = find_obstacles(tx, repo, me, request, ticket)
    refused = _describe(tx, me, request, found, ticket)
    free = [pattern for pattern, obstacle in zip(request.patterns, found, strict=True) if obstacle is None]
    if refused and not (request.is_partial and free):
        return Refused(refused=refused, free=tuple(pattern.text for pattern in free))
    return Taken(granted=_grant(tx, me, request, free, own), refused=refused)


def take_or_wait(
    tx: Transaction, repo: Repository, session: Session, request: Request, ticket: int | None
) -> Taken | None:
    """Grant all of a request inside a transaction, or return None.

    Why it was not granted is not described: that takes the longer the more wait, and all other writers wait
    for this transaction. `describe_refused` does it without a lock.
    """
    me = require_live(tx, session)
    found, own = find_obstacles(tx, repo, me, request, ticket)
    if any(obstacle is not None for obstacle in found):
        return None
    return Taken(granted=_grant(tx, me, request, request.patterns, own))


def describe_refused(snapshot: Snapshot, me: Session, request: Request, ticket: int | None) -> Refused | None:
    """Return why a request would be refused now; None if nothing is in its way."""
    alternatives = [alternative for pattern in request.patterns for alternative in pattern.alternatives]
    near = claims_near(snapshot, alternatives, me.id)
    mine = {me.id, *find_ancestors(snapshot, me.id)}
    others = [claim for claim in near if claim.session not in mine and not claim.is_over(snapshot.now)]
    own = _own_claims(near, me)
    found = [
        _find_obstacle(snapshot, me, request, pattern, others, ticket, own, has_waiters=True)
        for pattern in request.patterns
    ]
    free = [pattern for pattern, obstacle in zip(request.patterns, found, strict=True) if obstacle is None]
    refused = _describe(snapshot, me, request, found, ticket)
    return Refused(refused=refused, free=tuple(pattern.text for pattern in free)) if refused else None


def _describe(
    snapshot: Snapshot, me: Session, request: Request, found: Sequence[Obstacle | None], ticket: int | None
) -> tuple[Refusal, ...]:
    """Return the refusals of the patterns that something is in the way of."""
    if not any(obstacle is not None for obstacle in found):
        return ()
    from landlane.claims.describe import refuse_awaited, refuse_held  # noqa: PLC0415 - most are granted

    refused = [
        refuse_held(snapshot, me, request, pattern, held, ticket)
        if held
        else refuse_awaited(snapshot, me, request, pattern, ticket)
        for pattern, held in zip(request.patterns, found, strict=True)
        if held is not None
    ]
    return tuple(refusal for refusal in refused if refusal is not None)


def find_obstacles(
    tx: Transaction, repo: Repository, me: Session, request: Request, ticket: int | None
) -> tuple[list[Obstacle | None], Own]:
    """Return what is in the way of each pattern, and what of the request the session holds already."""
    alternatives = [alternative for pattern in request.patterns for alternative in pattern.alternatives]
    while True:
        near = Claim.from_rows(tx.near("claims_near", alternatives, me.id))
        own = _own_claims(near, me)
        if not tx.has_waiters and not any(claim.session != me.id for claim in near):
            return [None] * len(request.patterns), own
        mine = {me.id, *find_ancestors(tx, me.id)}
        others = [claim for claim in near if claim.session not in mine]
        ended = {claim.session for claim in others if claim.is_over(tx.now)}
        for session_id in ended:
            _remove_ended(tx, session_id)
        if ended:
            continue
        found = [
            _find_obstacle(tx, me, request, pattern, others, ticket, own, has_waiters=tx.has_waiters)
            for pattern in request.patterns
        ]
        blockers = {claim.session for held in found for claim in held or ()}
        gone = [blocker for blocker in blockers if end_if_gone(tx, blocker, repo.processes)]
        if not gone:
            return found, own


def _own_claims(claims: Sequence[Claim], me: Session) -> Own:
    return {(identity(claim), claim.mode): claim for claim in claims if claim.session == me.id}


def identity(pattern: Pattern | Claim) -> Identity:
    """Return what makes two spellings the same pattern."""
    return frozenset(pattern.alternatives)


def _remove_ended(tx: Transaction, session_id: str) -> None:
    """Remove claims whose lease has ended, or that were written while their session was being ended."""
    session = find_session(tx, session_id)
    if session is not None and session.has_ended:
        for claim in Claim.from_rows(tx.all("claims_of", session=session_id)):
            drop_claim(tx, session_id, claim.token)
    else:
        lapse(tx, session_id, is_certain=True)


def _find_obstacle(
    snapshot: Snapshot,
    me: Session,
    request: Request,
    pattern: Pattern,
    others: Sequence[Claim],
    ticket: int | None,
    own: Own,
    *,
    has_waiters: bool,
) -> Obstacle | None:
    """Return what keeps a pattern from being granted: claims of others, or who has waited longer for it."""
    if own and (identity(pattern), request.mode) in own:
        return None
    held = [claim for claim in others if find_conflict(pattern, request.mode, claim) is not None]
    if held:
        return held
    if not has_waiters or _holds_all(snapshot, me, pattern):
        return None
    from landlane.claims.describe import is_awaited  # noqa: PLC0415 - few repositories have waiters

    return [] if is_awaited(snapshot, me.id, request, pattern, ticket) else None


def _holds_all(snapshot: Snapshot, me: Session, pattern: Pattern) -> bool:
    """Return whether the session holds all of this already, so that no waiter is overtaken."""
    claims = Claim.from_rows(snapshot.all("claims_of", session=me.id))
    return covers_all([alternative for claim in claims for alternative in claim.alternatives], pattern)


def _grant(
    tx: Transaction, me: Session, request: Request, patterns: Sequence[Pattern], own: Own
) -> tuple[Claim, ...]:
    held = [own.get((identity(pattern), request.mode)) if own else None for pattern in patterns]
    numbers = iter(tx.next_numbers(held.count(None)))
    granted: list[Claim] = []
    for pattern, claim in zip(patterns, held, strict=True):
        if claim is not None:  # asking again for what the session holds renews it under the same token
            is_longer = claim.ttl_ms > request.ttl_ms and not request.may_shorten
            ttl_ms = claim.ttl_ms if is_longer else request.ttl_ms
            tx.run("claim_renew", session=me.id, token=claim.token, ttl_ms=ttl_ms)
            granted.append(claim_for(pattern, replace(request, ttl_ms=ttl_ms), me, claim.token, tx.now))
        else:
            granted.append(grant_new(tx, me, request, pattern, next(numbers)))
    if tx.now + request.ttl_ms < me.lapses_at or request.ttl_ms < me.shortest_ms:
        tx.run(
            "session_set_lease",
            session=me.id,
            seen_at=me.seen_at,
            shortest_ms=min(me.shortest_ms, request.ttl_ms),
            lapses_at=min(me.lapses_at, tx.now + request.ttl_ms),
        )
    return tuple(granted)


def grant_new(tx: Transaction, session: Session, request: Request, pattern: Pattern, number: int) -> Claim:
    """Give a session a claim without checking for conflicts; `number` is that of the journal entry."""
    claim = claim_for(pattern, request, session, token_of(tx.epoch, number), tx.now)
    add_claim(tx, claim)
    fields = ("kind", "mode", "note", "pattern", "task", "token", "ttl_ms")
    facts = {name: getattr(claim, name) for name in fields}  # enough to build the claim again
    tx.record("claim.taken", session.agent, session.id, facts, number)
    return claim


def add_claim(tx: Transaction, claim: Claim) -> None:
    """Write a claim, one row for each alternative of its pattern."""
    fields = ("token", "session", "pattern", "kind", "mode", "ttl_ms", "granted_at", "task", "note")
    columns = {name: getattr(claim, name) for name in fields}
    for index, alternative in enumerate(claim.alternatives):
        tx.run("claim_add", key=alternative.key, rest=alternative.rest, branch=index, **columns)


def claim_for(pattern: Pattern, request: Request, session: Session, token: int, granted_at: int) -> Claim:
    """Return the claim that granting this pattern makes."""
    return Claim(
        token=token,
        pattern=pattern.text,
        kind=pattern.kind,
        mode=request.mode,
        session=session.id,
        agent=session.agent,
        task=request.task,
        note=request.note,
        ttl_ms=request.ttl_ms,
        granted_at=granted_at,
        until=granted_at + request.ttl_ms,
        alternatives=pattern.alternatives,
    )
