"""Take claims: check and grant in one transaction; a refusal names the holder."""

from __future__ import annotations

from landlane.claims.model import (
    EXCLUSIVE,
    LONGEST_NOTE,
    SHARED,
    Claim,
    Request,
    Taken,
    check_request,
    is_in_the_way,
)
from landlane.claims.refusal_model import Refusal, Refused
from landlane.clock import duration_text
from landlane.errors import NotAllowed
from landlane.patterns.pattern import Alternative, covers_alternative
from landlane.sessions.leases import (
    end_if_gone,
    is_touch_due,
    lapse,
    renew_session,
    session_from,
    session_over,
)
from landlane.sessions.model import ends_at
from landlane.store.fencing_tokens import token_of
from landlane.store.lock_areas import areas_of
from landlane.text import check_label, check_text
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.context import Context
    from landlane.patterns.pattern import Pattern
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading, Row

    Identity = frozenset[tuple[str, str | None]]
    Own = dict[tuple[Identity, str], int]


_ENTRY = "landing-"  # so begin the names under which entries of the landing queue hold their claims
_GATE = "gate-"  # and so those under which gates keep what rests


def make_request(
    context: Context,
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
    settings = context.settings
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
        _check_mergeable(context, request)
    return check_request(request, max_ttl_ms=settings.claims.max_ttl_ms)


def _check_mergeable(context: Context, request: Request) -> None:
    pattern_of = context.repository.pattern_of
    patterns = context.settings.mergeable_patterns
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


def take(context: Context, session: Session, request: Request) -> Taken | Refused:
    """Take claims, or say who holds them.

    Raises:
        Stale: the session is over.
        NotAllowed: its role may not claim this.
    """
    check_request(request, max_ttl_ms=context.settings.claims.max_ttl_ms)
    if session.role:
        from landlane.roles.enforce import check_claim  # noqa: PLC0415 - most have no role

        check_claim(context, session, request.patterns)
    quick = context.store.take_uncontested(session.id, session.agent, request)
    if quick is not None:
        claims = tuple(
            claim_for(pattern, request, session, token, quick.granted_at)
            for pattern, token in zip(request.patterns, quick.tokens, strict=True)
        )
        if quick.granted_at - quick.seen_at > session.shortest_ms // 3:
            renew_session(context.store, session)
        return Taken(granted=claims)

    def work(tx: Change) -> Taken | Refused:
        return take_in(tx, context, session, request)

    return context.change(work, areas=areas_of(request.patterns))


def take_in(
    tx: Change, context: Context, session: Session, request: Request, ticket: int | None = None
) -> Taken | Refused:
    """Judge and grant inside a transaction; `ticket` is the caller's place in line, if it has one."""
    me = living(tx, session)
    verdicts, own = judge(tx, context, me, request, ticket)
    refused = tuple(refusal for refusal in verdicts if refusal is not None)
    wanted = [pattern for pattern, refusal in zip(request.patterns, verdicts, strict=True) if refusal is None]
    if refused and not (request.is_partial and wanted):
        return Refused(refused=refused)
    return Taken(granted=_grant(tx, me, request, wanted, own), refused=refused)


def living(tx: Change, session: Session) -> Session:
    """The session as it stands now, with this call counted as a sign of life.

    Raises:
        Stale: it is over.
    """
    # Held still until the commit: nobody may end the session, or lapse its claims, while we rely on them.
    row = tx.one("session_lock", session=session.id)
    if row is None or row[12] is not None:
        raise session_over(session.agent)
    if row[11] <= tx.now:  # something lapsed that the sweep has not reached
        lapse(tx, session.id)
        return living(tx, session)
    found = session_from(row)
    if is_touch_due(found, tx.now) and tx.run("session_touch", session=session.id):
        found = replace(found, seen_at=tx.now, lapses_at=tx.now + found.shortest_ms)
    return found


def judge(
    tx: Change, context: Context, me: Session, request: Request, ticket: int | None
) -> tuple[list[Refusal | None], Own]:
    """For each pattern what is in its way, if anything; and what of it the session holds already."""
    branches = [branch for pattern in request.patterns for branch in pattern.alternatives]
    while True:
        rows = tx.near("claims_near", branches, me.id)
        own = _own(rows, me.id) if rows else {}
        if not tx.has_waiters and not any(row[6] != me.id for row in rows):
            return [None] * len(request.patterns), own
        kin = ancestors_of(tx, me.id)
        others = [row for row in rows if row[6] != me.id and row[6] not in kin]
        over = {row[6] for row in others if is_over(row, tx.now)}
        for stale in over:
            _clear_away(tx, stale)
        if over:
            continue
        verdicts = [
            _first_in_the_way(tx, me, request, pattern, others, ticket, own) for pattern in request.patterns
        ]
        blockers = {refusal.session for refusal in verdicts if refusal is not None and not refusal.is_waiting}
        gone = [blocker for blocker in blockers if end_if_gone(tx, blocker, context.processes)]
        if not gone:
            return verdicts, own


def ancestors_of(reading: Reading, session: str) -> set[str]:
    """The sessions whose subagent this one is: what they hold, they hold for it, too."""
    found: set[str] = set()
    while (row := reading.one("parent_of", session=session)) is not None and row[0] not in found:
        session = row[0]
        found.add(session)
    return found


def identity(pattern: Pattern) -> Identity:
    """What makes two spellings the same pattern."""
    return frozenset((branch.key, branch.rest) for branch in pattern.alternatives)


def _own(rows: Sequence[Row], session: str) -> Own:
    """What the session itself holds among these rows: (identity, mode) → token."""
    branches: dict[tuple[int, str], set[tuple[str, str | None]]] = {}
    for row in rows:
        if row[6] == session:
            branches.setdefault((row[2], row[5]), set()).add((row[0], row[1]))
    return {(frozenset(held), mode): token for (token, mode), held in branches.items()}


def is_over(row: Row, now: int) -> bool:
    """Whether the claim in this row has ended, swept away or not."""
    return row[13] is not None or ends_at(row[11], row[12], row[10]) <= now


def _clear_away(tx: Change, session: str) -> None:
    """Remove what a session left behind: leases that ran out, or rows written while it was being ended."""
    row = tx.one("session_lock", session=session)
    if row is not None and row[12] is not None:
        for claim in tx.all("claims_of", session=session):
            tx.run("claim_drop", session=session, token=claim[2])
    else:
        lapse(tx, session, is_certain=True)


def _first_in_the_way(
    tx: Change,
    me: Session,
    request: Request,
    pattern: Pattern,
    others: Sequence[Row],
    ticket: int | None,
    own: Own,
) -> Refusal | None:
    if own and (identity(pattern), request.mode) in own:
        return None
    for row in others:
        if is_in_the_way(pattern, request.mode, Alternative(key=row[0], rest=row[1]), row[5]):
            return _refusal(tx, pattern, row)
    if tx.has_waiters and not _is_own_already(tx, me, pattern):
        for row in tx.near("waiters_near", pattern.alternatives, me.id):
            is_earlier = ticket is None or row[3] < ticket
            if is_earlier and is_in_the_way(
                pattern, request.mode, Alternative(key=row[0], rest=row[1]), row[6]
            ):
                return _refusal_for_waiter(pattern, row)
    return None


def _is_own_already(tx: Change, me: Session, pattern: Pattern) -> bool:
    """Whether the session holds all of this anyway, so that no waiter is passed over."""
    held = [Alternative(key=row[0], rest=row[1]) for row in tx.all("claims_of", session=me.id)]
    return all(any(covers_alternative(mine, branch) for mine in held) for branch in pattern.alternatives)


def _refusal(tx: Reading, pattern: Pattern, row: Row) -> Refusal:
    until = ends_at(row[11], row[12], row[10])
    wait = f"or stand in line: --wait {duration_text(until - tx.now)}"
    narrower = (
        "claim a narrower path, "
        if pattern.alternatives[0].rest or len(row[0]) > len(pattern.alternatives[0].key)
        else ""
    )
    if row[7].startswith(_ENTRY):  # it never lapses, and is seldom held for long
        entry = row[7].removeprefix(_ENTRY)
        wait = f"or stand in line: --wait 10m; `landlane queue show {entry}` tells how far it is"
    if row[7].startswith(_GATE):
        gate = row[7].removeprefix(_GATE)
        wait = f"or wait until a person has answered {gate}; `landlane gate show {gate}` tells what is asked"
    if row[5] == SHARED:
        wait = f"claim it --shared too if your change can be combined, {wait}"
    return Refusal(
        pattern=pattern.text,
        holder=row[7],
        session=row[6],
        held=row[3],
        mode=row[5],
        task=row[8],
        note=row[9],
        since=row[11],
        until=until,
        is_waiting=False,
        hint=f"work on something else, {narrower}{wait}",
    )


def _refusal_for_waiter(pattern: Pattern, row: Row) -> Refusal:
    return Refusal(
        pattern=pattern.text,
        holder=row[5],
        session=row[4],
        held=row[2],
        mode=row[6],
        task=row[7],
        note="",
        since=row[8],
        until=row[9],
        is_waiting=True,
        hint=f"{row[5]} has waited longer for it; stand in line with --wait, or work on something else",
    )


def _grant(
    tx: Change, me: Session, request: Request, wanted: Sequence[Pattern], own: Own
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


def _grant_one(tx: Change, me: Session, request: Request, pattern: Pattern, number: int) -> Claim:
    token = token_of(tx.epoch, number)
    claim = claim_for(pattern, request, me, token, tx.now)
    for index, branch in enumerate(pattern.alternatives):
        tx.run(
            "claim_add",
            key=branch.key,
            token=token,
            branch=index,
            rest=branch.rest,
            session=me.id,
            pattern=claim.pattern,
            kind=claim.kind,
            mode=claim.mode,
            ttl_ms=claim.ttl_ms,
            granted_at=claim.granted_at,
            task=claim.task,
            note=claim.note,
        )
    tx.record("claim.taken", me.agent, me.id, taken_facts(claim), number)
    return claim


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
    )
