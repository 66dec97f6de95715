"""Move a handed-off task with its claims and workspace to the session that accepts it."""

from __future__ import annotations

from landlane.claims.holder_sessions import end_holder
from landlane.claims.model import Claim, ClaimMode, Refused, Request
from landlane.claims.take import claims_of, take_in
from landlane.errors import NotAllowed
from landlane.handoffs.model import (
    ACCEPTED,
    SENT,
    WITHDRAWN,
    Handoff,
    is_addressed,
    may_take,
)
from landlane.patterns.pattern import areas_of, covers_all
from landlane.roles.model import Scope, forbidden, role_or_read_only, why_not_verb
from landlane.sessions.leases import lock_live_session
from landlane.store import records
from landlane.tasks.records import take_ownership, task_patterns
from landlane.values import as_dict, replace
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.handoffs.model import OnStep
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


NOUN = "handoff"


def newest_handoff(snapshot: Snapshot, task_id: str, state: str = "") -> Handoff | None:
    """Return the newest handoff of a task, in any state or in this one."""
    documents = records.find_by_key(snapshot, NOUN, task_id, state)
    return Handoff.from_document(documents[-1]) if documents else None


def open_handoff(snapshot: Snapshot, task_id: str) -> Handoff | None:
    """Return the handoff of a task that waits to be accepted, if there is one."""
    return newest_handoff(snapshot, task_id, SENT)


def handoffs_in(snapshot: Snapshot, states: Sequence[str] = ()) -> list[Handoff]:
    """Return all handoffs, or the unsettled ones in these states, oldest first."""
    return [Handoff.from_document(document) for document in records.find_all(snapshot, NOUN, states)]


def waiting_in(snapshot: Snapshot) -> list[Handoff]:
    """Return the handoffs that wait to be accepted, oldest first."""
    return handoffs_in(snapshot, (SENT,))


def is_offered_to(repo: Repository, handoff: Handoff, me: Session, now: int) -> bool:
    """Return whether `next` may offer the task to this session; `now` is the store's time."""
    return may_take(handoff, me.agent, me.role, repo.store.wall_of(now))


def addressed_to(repo: Repository, snapshot: Snapshot, me: Session) -> list[Handoff]:
    """Return the handoffs addressed to this session that it has not declined."""
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
    on_step: OnStep = lambda _: None,
) -> tuple[Task, tuple[Claim, ...]] | Refused:
    """Move a task, its claims and its workspace to a session, which continues the attempt; or change nothing.

    Raises:
        NotAllowed: the role of the session may not claim the paths of the task.
    """
    kept = _kept_claims(tx, handoff)
    declared = task_patterns(repo, task)
    patterns = [repo.git.pattern_of(claim.pattern, claim.kind) for claim in kept]
    _check_role(repo, me, [*patterns, *declared])
    missing = [one for one in declared if not _is_covered(kept, one)]
    tx.lock_areas(areas_of([*patterns, *declared]))
    _pass_on(tx, kept, me.id)  # first, so that these claims do not block the rest
    granted: tuple[Claim, ...] = ()
    if missing:
        request = Request(patterns=tuple(missing), mode=ClaimMode.EXCLUSIVE, ttl_ms=me.lease_ms, task=task.id)
        outcome = take_in(tx, repo, me, request)
        if isinstance(outcome, Refused):
            _pass_on(tx, kept, handoff.holder, former=me.id)
            return outcome
        granted = outcome.granted
    on_step("claimed")
    claims = (*_renew_claims(tx, me, kept), *granted)
    end_holder(tx, handoff.holder)
    _move_workspaces(tx, me, handoff)
    accepted = handoff.become(
        ACCEPTED,
        accepted_by=me.agent,
        accepted_session=me.id,
        accepted_at=repo.store.wall_of(tx.now),
    )
    records.put(tx, NOUN, as_dict(accepted), "accepted", me, task=task.id)
    taken = take_ownership(tx, me, task, handoff=handoff.id)
    on_step("moved")
    return taken, claims


def accept_if_offered(
    tx: Transaction, repo: Repository, me: Session, task: Task
) -> tuple[Task, tuple[Claim, ...]] | None:
    """Accept the open handoff of a task; None if it is addressed to others or its paths cannot be claimed."""
    handoff = open_handoff(tx, task.id)
    if handoff is None or not is_offered_to(repo, handoff, me, tx.now):
        return None
    try:
        outcome = accept_in(tx, repo, me, task, handoff)
    except NotAllowed:  # by its role: another session may accept it
        return None
    return None if isinstance(outcome, Refused) else outcome


def release_holder(tx: Transaction, handoff: Handoff) -> None:
    """Release the claims that wait for the receiver."""
    end_holder(tx, handoff.holder)
    tx.has_freed = True  # a handoff to any agent has no holder, but the task is free now


def withdraw_in(tx: Transaction, task_id: str, why: str) -> None:
    """Withdraw the open handoff of a task, if there is one, and release its claims."""
    handoff = open_handoff(tx, task_id)
    if handoff is None:
        return
    release_holder(tx, handoff)
    withdrawn = handoff.become(WITHDRAWN, why=why)
    records.put(tx, NOUN, as_dict(withdrawn), "withdrawn", None, task=task_id)


def _kept_claims(tx: Transaction, handoff: Handoff) -> list[Claim]:
    """Return the claims that the holder has; none if its lease has ended."""
    holder = lock_live_session(tx, handoff.holder) if handoff.holder else None
    return claims_of(tx, holder.id) if holder is not None and holder.is_alive(tx.now) else []


def _is_covered(claims: Sequence[Claim], pattern: Pattern) -> bool:
    exclusive = [claim for claim in claims if claim.mode == ClaimMode.EXCLUSIVE]
    return covers_all([one for claim in exclusive for one in claim.alternatives], pattern)


def _check_role(repo: Repository, me: Session, patterns: Sequence[Pattern]) -> None:
    role = role_or_read_only(repo.settings, me.role)
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


def _renew_claims(tx: Transaction, me: Session, kept: Sequence[Claim]) -> list[Claim]:
    """Give the claims the lease of their new session, and record that they have moved."""
    for claim in kept:
        tx.run("claim_renew", session=me.id, token=claim.token, ttl_ms=me.lease_ms)
        facts = {"pattern": claim.pattern, "token": claim.token, "to": me.id}
        tx.record("claim.passed", claim.agent, claim.session, facts)
    grant = {"session": me.id, "agent": me.agent, "ttl_ms": me.lease_ms, "granted_at": tx.now}
    return [replace(claim, until=tx.now + me.lease_ms, **grant) for claim in kept]


def _move_workspaces(tx: Transaction, me: Session, handoff: Handoff) -> None:
    for document in records.find_by_key(tx, "workspace", handoff.task, OPEN):
        if document["session"] in (handoff.session, handoff.holder):
            moved = {**document, "session": me.id, "agent": me.agent}
            records.put(tx, "workspace", moved, "adopted", me)
