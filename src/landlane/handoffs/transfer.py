"""Move a task with its claims and workspace to the owner that accepts it; whom a handoff is for."""

from __future__ import annotations

from landlane.claims.holder_sessions import release_rows
from landlane.claims.model import EXCLUSIVE, Claim, Request
from landlane.claims.refusal_model import Refused
from landlane.claims.take import claim_for, take_in
from landlane.errors import NotAllowed
from landlane.handoffs.model import (
    ACCEPTED,
    SENT,
    WITHDRAWN,
    Handoff,
    handoff_from,
    is_addressed,
    may_take,
)
from landlane.patterns.pattern import Alternative, covers_alternative
from landlane.roles.built_in import bound_by
from landlane.roles.model import Scope, forbidden, why_not_verb
from landlane.sessions.leases import end_session, session_from
from landlane.sessions.model import PERSON
from landlane.store import records
from landlane.store.lock_areas import areas_of
from landlane.tasks.model import ACTIVE, check_transition
from landlane.tasks.rows import pattern_pairs, who, whole
from landlane.values import as_dict, replace
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.context import Context
    from landlane.patterns.pattern import Pattern
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading, Row
    from landlane.tasks.model import Task


NOUN = "handoff"


def open_handoff(reading: Reading, task_id: str) -> Handoff | None:
    """The handoff under which a task waits to be accepted, if there is one."""
    found = records.by_key(reading, NOUN, task_id, SENT)
    return handoff_from(found[-1]) if found else None


def waiting_in(reading: Reading) -> list[Handoff]:
    """The handoffs that nobody has accepted yet, the oldest first."""
    return [handoff_from(document) for document in records.all_of(reading, NOUN, (SENT,))]


def may_have(context: Context, handoff: Handoff, me: Session, now: int) -> bool:
    """Whether `next` may offer a handed task to this session; `now` is the store's."""
    return may_take(handoff, me.agent, me.role, context.store.wall_of(now))


def addressed_to(context: Context, reading: Reading, me: Session) -> list[Handoff]:
    """The handoffs that wait for exactly this session, and that it has not declined."""
    now = context.store.wall_of(reading.now)
    return [
        one
        for one in waiting_in(reading)
        if is_addressed(one, me.agent, me.role) and may_take(one, me.agent, me.role, now)
    ]


def accept_in(
    tx: Change,
    context: Context,
    me: Session,
    task: Task,
    handoff: Handoff,
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[Task, tuple[Claim, ...]] | Refused:
    """Move a handed task, its claims and its workspace to a session; nothing is changed when it is refused.

    The attempt goes on: its branch and its workspace are those of the former owner.

    Raises:
        NotAllowed: the role of the session may not have what the task changes.
    """
    kept = _kept_rows(tx, handoff)
    declared = [context.repository.pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)]
    patterns = [context.repository.pattern_of(row[3], row[4]) for row in kept]
    _check_role(context, me, [*patterns, *declared])
    missing = [one for one in declared if not _is_covered(kept, one)]
    tx.lock_areas(areas_of([*patterns, *declared]))
    _pass_on(tx, kept, me.id)  # first: what the holder keeps must not be in the way of the rest
    granted: tuple[Claim, ...] = ()
    if missing:
        request = Request(patterns=tuple(missing), mode=EXCLUSIVE, ttl_ms=me.lease_ms, task=task.id)
        outcome = take_in(tx, context, me, request)
        if isinstance(outcome, Refused):
            _pass_on(tx, kept, handoff.holder, former=me.id)
            return outcome
        granted = outcome.granted
    on_step("claimed")
    claims = (*_own(tx, me, kept, patterns), *granted)
    _end_holder(tx, handoff)
    _move_workspaces(tx, me, handoff)
    accepted = replace(
        handoff,
        state=ACCEPTED,
        accepted_by=me.agent,
        accepted_session=me.id,
        accepted_at=context.store.wall_of(tx.now),
        is_settled=True,
    )
    records.put(tx, NOUN, as_dict(accepted), "accepted", me, task=task.id)
    check_transition(task.id, task.state, ACTIVE)
    tx.run("task_accept", task=task.id, owner=me.agent, session=me.id)
    facts = {"task": task.id, "attempt": task.attempt, "base": "", "handoff": handoff.id}
    tx.record("task.taken", *who(me), facts)
    on_step("moved")
    mine = replace(task, state=ACTIVE, owner=me.agent, session=me.id, why="", taken_at=tx.now)
    return whole(tx, mine), claims


def accept_if_offered(
    tx: Change, context: Context, me: Session, task: Task
) -> tuple[Task, tuple[Claim, ...]] | None:
    """Accept the open handoff of a task; None when it is for others, or its paths cannot be claimed."""
    handoff = open_handoff(tx, task.id)
    if handoff is None or not may_have(context, handoff, me, tx.now):
        return None
    try:
        outcome = accept_in(tx, context, me, task, handoff)
    except NotAllowed:  # its role may not have it: another session will
        return None
    return None if isinstance(outcome, Refused) else outcome


def withdraw_in(tx: Change, task_id: str, why: str) -> None:
    """The task goes another way than it was handed: what is kept for its next owner is free again."""
    handoff = open_handoff(tx, task_id)
    if handoff is None:
        return
    drop_holder(tx, handoff)
    over = replace(handoff, state=WITHDRAWN, why=why, is_settled=True)
    records.put(tx, NOUN, as_dict(over), "withdrawn", None, task=task_id)


def is_persons(me: Session) -> bool:
    """Whether a person acts, who may take over anything."""
    return me.kind == PERSON


# ------------------------------------------------------------------------------------------ claims


def _kept_rows(tx: Change, handoff: Handoff) -> list[Row]:
    """One row for each branch of what the holder still keeps; nothing when its lease ran out."""
    row = tx.one("session_lock", session=handoff.holder) if handoff.holder else None
    if row is None or row[12] is not None or row[9] + row[7] <= tx.now:
        return []
    return tx.all("claims_of", session=handoff.holder)


def _is_covered(rows: Sequence[Row], pattern: Pattern) -> bool:
    held = [Alternative(key=row[0], rest=row[1]) for row in rows if row[5] == EXCLUSIVE]
    return all(any(covers_alternative(one, branch) for one in held) for branch in pattern.alternatives)


def _check_role(context: Context, me: Session, patterns: Sequence[Pattern]) -> None:
    role = bound_by(context.settings, me.role)
    if role is None or not patterns:
        return
    scope = Scope(role, context.settings)
    for pattern in patterns:
        why = why_not_verb(role, "claim") or scope.why_not_claimed(pattern)
        if why:
            raise forbidden(me.agent, me.role, why)


def _pass_on(tx: Change, rows: Sequence[Row], to: str, *, former: str = "") -> None:
    for token in dict.fromkeys(row[2] for row in rows):
        tx.run("claim_hand_up", session=former or rows[0][6], parent=to, token=token)


def _own(tx: Change, me: Session, rows: Sequence[Row], patterns: Sequence[Pattern]) -> tuple[Claim, ...]:
    """What was kept, as the claims of its new owner: they end with its session, as the task does."""
    claims: dict[int, Claim] = {}
    for row, pattern in zip(rows, patterns, strict=True):
        if row[2] in claims:
            continue
        tx.run("claim_renew", session=me.id, token=row[2], ttl_ms=me.lease_ms)
        request = Request(patterns=(pattern,), mode=row[5], ttl_ms=me.lease_ms, task=row[8], note=row[9])
        claims[row[2]] = claim_for(pattern, request, me, row[2], tx.now)
        facts = {"pattern": row[3], "token": row[2], "to": me.id}
        tx.record("claim.passed", row[7], row[6], facts)
    return tuple(claims.values())


def _end_holder(tx: Change, handoff: Handoff) -> None:
    row = tx.one("session_lock", session=handoff.holder) if handoff.holder else None
    if row is not None and row[12] is None:
        end_session(tx, session_from(row), "session.left", {})


def drop_holder(tx: Change, handoff: Handoff) -> None:
    """Give back what was kept for the next owner."""
    if handoff.holder:
        release_rows(tx, tx.all("claims_of", session=handoff.holder))
    _end_holder(tx, handoff)
    tx.frees = True


# -------------------------------------------------------------------------------------- workspaces


def _move_workspaces(tx: Change, me: Session, handoff: Handoff) -> None:
    for document in records.by_key(tx, "workspace", handoff.task, OPEN):
        if document["session"] in (handoff.session, handoff.holder):
            moved = {**document, "session": me.id, "agent": me.agent}
            records.put(tx, "workspace", moved, "adopted", me)
