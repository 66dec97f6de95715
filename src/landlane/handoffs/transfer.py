"""Move a task with its claims and workspace to the owner that accepts it; whom a handoff is for."""

from __future__ import annotations

from landlane.claims.holder_sessions import drop_claims
from landlane.claims.model import Claim, ClaimMode, Refused, Request
from landlane.claims.read import claims_of
from landlane.claims.take import take_in
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
from landlane.patterns.pattern import areas_of
from landlane.roles.built_in import bound_by
from landlane.roles.model import Scope, forbidden, why_not_verb
from landlane.sessions.leases import end_session
from landlane.sessions.model import covers_all
from landlane.sessions.read import lock_live_session
from landlane.store import records
from landlane.tasks.model import ACTIVE, check_transition
from landlane.tasks.records import pattern_pairs, who, whole
from landlane.values import as_dict, replace
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


NOUN = "handoff"


def open_handoff(snapshot: Snapshot, task_id: str) -> Handoff | None:
    """The handoff under which a task waits to be accepted, if there is one."""
    found = records.by_key(snapshot, NOUN, task_id, SENT)
    return handoff_from(found[-1]) if found else None


def waiting_in(snapshot: Snapshot) -> list[Handoff]:
    """The handoffs that nobody has accepted yet, the oldest first."""
    return [handoff_from(document) for document in records.all_of(snapshot, NOUN, (SENT,))]


def may_have(repo: Repository, handoff: Handoff, me: Session, now: int) -> bool:
    """Whether `next` may offer a handed task to this session; `now` is the store's."""
    return may_take(handoff, me.agent, me.role, repo.store.wall_of(now))


def addressed_to(repo: Repository, snapshot: Snapshot, me: Session) -> list[Handoff]:
    """The handoffs that wait for exactly this session, and that it has not declined."""
    now = repo.store.wall_of(snapshot.now)
    return [
        one
        for one in waiting_in(snapshot)
        if is_addressed(one, me.agent, me.role) and may_take(one, me.agent, me.role, now)
    ]


def accept_in(
    tx: Transaction,
    repo: Repository,
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
    kept = _kept_claims(tx, handoff)
    declared = [repo.git.pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)]
    patterns = [repo.git.pattern_of(claim.pattern, claim.kind) for claim in kept]
    _check_role(repo, me, [*patterns, *declared])
    missing = [one for one in declared if not _is_covered(kept, one)]
    tx.lock_areas(areas_of([*patterns, *declared]))
    _pass_on(tx, kept, me.id)  # first: what the holder keeps must not be in the way of the rest
    granted: tuple[Claim, ...] = ()
    if missing:
        request = Request(patterns=tuple(missing), mode=ClaimMode.EXCLUSIVE, ttl_ms=me.lease_ms, task=task.id)
        outcome = take_in(tx, repo, me, request)
        if isinstance(outcome, Refused):
            _pass_on(tx, kept, handoff.holder, former=me.id)
            return outcome
        granted = outcome.granted
    on_step("claimed")
    claims = (*_own(tx, me, kept), *granted)
    _end_holder(tx, handoff)
    _move_workspaces(tx, me, handoff)
    accepted = replace(
        handoff,
        state=ACCEPTED,
        accepted_by=me.agent,
        accepted_session=me.id,
        accepted_at=repo.store.wall_of(tx.now),
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
    tx: Transaction, repo: Repository, me: Session, task: Task
) -> tuple[Task, tuple[Claim, ...]] | None:
    """Accept the open handoff of a task; None when it is for others, or its paths cannot be claimed."""
    handoff = open_handoff(tx, task.id)
    if handoff is None or not may_have(repo, handoff, me, tx.now):
        return None
    try:
        outcome = accept_in(tx, repo, me, task, handoff)
    except NotAllowed:  # its role may not have it: another session will
        return None
    return None if isinstance(outcome, Refused) else outcome


def withdraw_in(tx: Transaction, task_id: str, why: str) -> None:
    """The task goes another way than it was handed: what is kept for its next owner is free again."""
    handoff = open_handoff(tx, task_id)
    if handoff is None:
        return
    drop_holder(tx, handoff)
    over = replace(handoff, state=WITHDRAWN, why=why, is_settled=True)
    records.put(tx, NOUN, as_dict(over), "withdrawn", None, task=task_id)


# ------------------------------------------------------------------------------------------ claims


def _kept_claims(tx: Transaction, handoff: Handoff) -> list[Claim]:
    """Return the claims that the holder still keeps; none if its lease has ended."""
    holder = lock_live_session(tx, handoff.holder) if handoff.holder else None
    return claims_of(tx, holder.id) if holder is not None and holder.is_alive(tx.now) else []


def _is_covered(claims: Sequence[Claim], pattern: Pattern) -> bool:
    held = [branch for claim in claims if claim.mode == ClaimMode.EXCLUSIVE for branch in claim.alternatives]
    return covers_all(held, pattern)


def _check_role(repo: Repository, me: Session, patterns: Sequence[Pattern]) -> None:
    role = bound_by(repo.settings, me.role)
    if role is None or not patterns:
        return
    scope = Scope(role, repo.settings)
    for pattern in patterns:
        why = why_not_verb(role, "claim") or scope.why_not_claimed(pattern)
        if why:
            raise forbidden(me.agent, me.role, why)


def _pass_on(tx: Transaction, claims: Sequence[Claim], to: str, *, former: str = "") -> None:
    for claim in claims:
        tx.run("claim_hand_up", session=former or claim.session, parent=to, token=claim.token)


def _own(tx: Transaction, me: Session, kept: Sequence[Claim]) -> list[Claim]:
    """Give what was kept to its new owner; it ends with that session, as the task does."""
    for claim in kept:
        tx.run("claim_renew", session=me.id, token=claim.token, ttl_ms=me.lease_ms)
        facts = {"pattern": claim.pattern, "token": claim.token, "to": me.id}
        tx.record("claim.passed", claim.agent, claim.session, facts)
    grant = {"session": me.id, "agent": me.agent, "ttl_ms": me.lease_ms, "granted_at": tx.now}
    return [replace(claim, until=tx.now + me.lease_ms, **grant) for claim in kept]


def _end_holder(tx: Transaction, handoff: Handoff) -> None:
    holder = lock_live_session(tx, handoff.holder) if handoff.holder else None
    if holder is not None:
        end_session(tx, holder, "session.left", {})


def drop_holder(tx: Transaction, handoff: Handoff) -> None:
    """Give back what was kept for the next owner."""
    if handoff.holder:
        drop_claims(tx, claims_of(tx, handoff.holder))
    _end_holder(tx, handoff)
    tx.frees = True


# -------------------------------------------------------------------------------------- workspaces


def _move_workspaces(tx: Transaction, me: Session, handoff: Handoff) -> None:
    for document in records.by_key(tx, "workspace", handoff.task, OPEN):
        if document["session"] in (handoff.session, handoff.holder):
            moved = {**document, "session": me.id, "agent": me.agent}
            records.put(tx, "workspace", moved, "adopted", me)
