"""Take claims: check and grant in one transaction; a refusal names the holder."""

from __future__ import annotations

from landlane.claims.model import (
    EXCLUSIVE,
    LONGEST_NOTE,
    SHARED,
    Request,
    Taken,
    check_request,
    find_conflict,
)
from landlane.claims.refusal_model import Refusal, Refused
from landlane.clock import duration_text
from landlane.errors import NotAllowed
from landlane.patterns.pattern import covers_alternative
from landlane.sessions.leases import (
    end_if_gone,
    is_touch_due,
    lapse,
    renew_session,
    session_over,
)
from landlane.sessions.model import Claim, Session, Waiter, covers_all
from landlane.sessions.read import find_ancestors, lock_live_session
from landlane.store.fencing_tokens import token_of
from landlane.store.lock_areas import areas_of
from landlane.text import check_label, check_text
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Identity
    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction

    Own = dict[tuple[Identity, str], int]


_ENTRY = "landing-"  # so begin the names under which entries of the landing queue hold their claims
_GATE = "gate-"  # and so those under which gates keep what rests


def make_request(
    repo: Repository,
    patterns: tuple[Pattern, ...],
    *,
    mode: str = EXCLUSIVE,
    ttl_ms: int | None = None,
    task: str = "",
    note: str = "",
    is_partial: bool = False,
) -> Request:
    """A request that the settings allow.

    Raises:
        Malformed: the lease, the task or the note cannot be used, or there is nothing to claim.
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
    )
    if mode == SHARED and settings.claims.shareable is not None:
        _check_mergeable(repo, request)
    return check_request(request, max_ttl_ms=settings.claims.max_ttl_ms)


def _check_mergeable(repo: Repository, request: Request) -> None:
    pattern_of = repo.git.pattern_of
    patterns = repo.settings.mergeable_patterns
    mergeable = [known for text in patterns for known in pattern_of(text, "glob").alternatives]
    for pattern in request.patterns:
        if not all(
            any(covers_alternative(known, wanted) for known in mergeable) for wanted in pattern.alternatives
        ):
            raise NotAllowed(
                f"{pattern.text} is not mergeable and cannot be shared",
                code="NOT_MERGEABLE",
                hint="claim it exclusively, or list it in [landing.merge.files] if its changes can be merged",
            )


def take(repo: Repository, session: Session, request: Request) -> Taken | Refused:
    """Take claims, or say who holds them.

    Raises:
        Stale: the session is over.
        NotAllowed: its role may not claim this.
    """
    check_request(request, max_ttl_ms=repo.settings.claims.max_ttl_ms)
    if session.role:
        from landlane.roles.enforce import check_claim  # noqa: PLC0415 - most have no role

        check_claim(repo, session, request.patterns)
    quick = repo.store.take_uncontested(session.id, session.agent, request)
    if quick is not None:
        claims = tuple(
            claim_for(pattern, request, session, token, quick.granted_at)
            for pattern, token in zip(request.patterns, quick.tokens, strict=True)
        )
        if quick.granted_at - quick.seen_at > session.shortest_ms // 3:
            renew_session(repo.store, session)
        return Taken(granted=claims)

    def work(tx: Transaction) -> Taken | Refused:
        return take_in(tx, repo, session, request)

    return repo.change(work, areas=areas_of(request.patterns))


def take_in(
    tx: Transaction, repo: Repository, session: Session, request: Request, ticket: int | None = None
) -> Taken | Refused:
    """Judge and grant inside a transaction; `ticket` is the caller's place in line, if it has one."""
    me = living(tx, session)
    verdicts, own = judge(tx, repo, me, request, ticket)
    refused = tuple(refusal for refusal in verdicts if refusal is not None)
    wanted = [pattern for pattern, refusal in zip(request.patterns, verdicts, strict=True) if refusal is None]
    if refused and not (request.is_partial and wanted):
        return Refused(refused=refused)
    return Taken(granted=_grant(tx, me, request, wanted, own), refused=refused)


def living(tx: Transaction, session: Session) -> Session:
    """The session as it stands now, with this call counted as a sign of life.

    Raises:
        Stale: it is over.
    """
    # Held still until the commit: nobody may end the session, or lapse its claims, while we rely on them.
    live = lock_live_session(tx, session.id)
    if live is None:
        raise session_over(session.agent)
    if live.lapses_at <= tx.now:  # something lapsed that the sweep has not reached
        lapse(tx, session.id)
        return living(tx, session)
    if is_touch_due(live, tx.now) and tx.run("session_touch", session=session.id):
        live = replace(live, seen_at=tx.now, lapses_at=tx.now + live.shortest_ms)
    return live


def judge(
    tx: Transaction, repo: Repository, me: Session, request: Request, ticket: int | None
) -> tuple[list[Refusal | None], Own]:
    """For each pattern what is in its way, if anything; and what of it the session holds already."""
    branches = [branch for pattern in request.patterns for branch in pattern.alternatives]
    while True:
        near = Claim.from_rows(tx.near("claims_near", branches, me.id))
        own = {
            (frozenset(claim.alternatives), claim.mode): claim.token
            for claim in near
            if claim.session == me.id
        }
        if not tx.has_waiters and not any(claim.session != me.id for claim in near):
            return [None] * len(request.patterns), own
        mine = {me.id, *find_ancestors(tx, me.id)}
        others = [claim for claim in near if claim.session not in mine]
        over = {claim.session for claim in others if claim.is_over(tx.now)}
        for stale in over:
            _clear_away(tx, stale)
        if over:
            continue
        verdicts = [
            _first_in_the_way(tx, me, request, pattern, others, ticket, own) for pattern in request.patterns
        ]
        blockers = {refusal.session for refusal in verdicts if refusal is not None and not refusal.is_waiting}
        gone = [blocker for blocker in blockers if end_if_gone(tx, blocker, repo.processes)]
        if not gone:
            return verdicts, own


def identity(pattern: Pattern) -> Identity:
    """What makes two spellings the same pattern."""
    return frozenset(pattern.alternatives)


def _clear_away(tx: Transaction, session: str) -> None:
    """Remove what a session left behind: leases that ran out, or rows written while it was being ended."""
    row = tx.one("session_lock", session=session)
    if row is not None and Session.from_row(row).has_ended:
        for claim in Claim.from_rows(tx.all("claims_of", session=session)):
            tx.run("claim_drop", session=session, token=claim.token)
    else:
        lapse(tx, session, is_certain=True)


def _first_in_the_way(
    tx: Transaction,
    me: Session,
    request: Request,
    pattern: Pattern,
    others: Sequence[Claim],
    ticket: int | None,
    own: Own,
) -> Refusal | None:
    if own and (identity(pattern), request.mode) in own:
        return None
    for claim in others:
        held = find_conflict(pattern, request.mode, claim)
        if held is not None:
            return _refusal(tx, pattern, claim, held)
    if tx.has_waiters and not _is_own_already(tx, me, pattern):
        for waiter in Waiter.from_rows(tx.near("waiters_near", pattern.alternatives, me.id)):
            wanted = find_conflict(pattern, request.mode, waiter)
            if wanted is not None and (ticket is None or waiter.ticket < ticket):
                return _refusal_for_waiter(pattern, waiter, wanted)
    return None


def _is_own_already(tx: Transaction, me: Session, pattern: Pattern) -> bool:
    """Whether the session holds all of this anyway, so that no waiter is passed over."""
    claims = Claim.from_rows(tx.all("claims_of", session=me.id))
    return covers_all([branch for claim in claims for branch in claim.alternatives], pattern)


def _refusal(tx: Snapshot, pattern: Pattern, claim: Claim, held: Alternative) -> Refusal:
    wait = f"or stand in line: --wait {duration_text(claim.until - tx.now)}"
    narrower = (
        "claim a narrower path, "
        if pattern.alternatives[0].rest or len(held.key) > len(pattern.alternatives[0].key)
        else ""
    )
    if claim.agent.startswith(_ENTRY):  # it never lapses, and is seldom held for long
        entry = claim.agent.removeprefix(_ENTRY)
        wait = f"or stand in line: --wait 10m; `landlane queue show {entry}` tells how far it is"
    if claim.agent.startswith(_GATE):
        gate = claim.agent.removeprefix(_GATE)
        wait = f"or wait until a person has answered {gate}; `landlane gate show {gate}` tells what is asked"
    if claim.mode == SHARED:
        wait = f"claim it --shared too if your change can be combined, {wait}"
    return Refusal(
        pattern=pattern.text,
        holder=claim.agent,
        session=claim.session,
        held=claim.pattern,
        mode=claim.mode,
        task=claim.task,
        note=claim.note,
        since=claim.granted_at,
        until=claim.until,
        is_waiting=False,
        hint=f"work on something else, {narrower}{wait}",
    )


def _refusal_for_waiter(pattern: Pattern, waiter: Waiter, wanted: Alternative) -> Refusal:
    return Refusal(
        pattern=pattern.text,
        holder=waiter.agent,
        session=waiter.session,
        held=waiter.patterns[waiter.alternatives.index(wanted)],
        mode=waiter.mode,
        task=waiter.task,
        note="",
        since=waiter.since,
        until=waiter.alive_until,
        is_waiting=True,
        hint=f"{waiter.agent} has waited longer for it; stand in line with --wait, or work on something else",
    )


def _grant(
    tx: Transaction, me: Session, request: Request, wanted: Sequence[Pattern], own: Own
) -> tuple[Claim, ...]:
    tokens = (
        [own.get((identity(pattern), request.mode)) for pattern in wanted] if own else [None] * len(wanted)
    )
    numbers = iter(tx.next_numbers(tokens.count(None)))
    granted: list[Claim] = []
    for pattern, held in zip(wanted, tokens, strict=True):
        if held is not None:  # asking again for what one holds renews it under the same token
            tx.run("claim_renew", session=me.id, token=held, ttl_ms=request.ttl_ms)
            granted.append(claim_for(pattern, request, me, held, tx.now))
        else:
            granted.append(_grant_one(tx, me, request, pattern, next(numbers)))
    if tx.now + request.ttl_ms < me.lapses_at or request.ttl_ms < me.shortest_ms:
        tx.run(
            "session_set_lease",
            session=me.id,
            seen_at=me.seen_at,
            shortest_ms=min(me.shortest_ms, request.ttl_ms),
            lapses_at=min(me.lapses_at, tx.now + request.ttl_ms),
        )
    return tuple(granted)


def _grant_one(tx: Transaction, me: Session, request: Request, pattern: Pattern, number: int) -> Claim:
    token = token_of(tx.epoch, number)
    claim = claim_for(pattern, request, me, token, tx.now)
    add_claim(tx, claim)
    tx.record("claim.taken", me.agent, me.id, taken_facts(claim), number)
    return claim


def add_claim(tx: Transaction, claim: Claim) -> None:
    """Write a claim, one row for each alternative."""
    for index, branch in enumerate(claim.alternatives):
        tx.run(
            "claim_add",
            key=branch.key,
            token=claim.token,
            branch=index,
            rest=branch.rest,
            session=claim.session,
            pattern=claim.pattern,
            kind=claim.kind,
            mode=claim.mode,
            ttl_ms=claim.ttl_ms,
            granted_at=claim.granted_at,
            task=claim.task,
            note=claim.note,
        )


def taken_facts(claim: Claim) -> dict[str, object]:
    """What the journal keeps of a grant: enough to build it again."""
    return {
        "kind": claim.kind,
        "mode": claim.mode,
        "note": claim.note,
        "pattern": claim.pattern,
        "task": claim.task,
        "token": claim.token,
        "ttl_ms": claim.ttl_ms,
    }


def claim_for(pattern: Pattern, request: Request, session: Session, token: int, granted_at: int) -> Claim:
    """The claim that a grant makes."""
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
