"""Keep a task's claims in a holder session while the task waits."""

from __future__ import annotations

from landlane.claims.holder_sessions import FOR_EVER_MS, begin_holder, drop_claims, give_claim
from landlane.claims.read import claims_of
from landlane.sessions.model import SessionKind
from landlane.tasks.model import AT_WORK
from landlane.tasks.rows import tasks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction


_KEPT = ("pattern", "kind", "mode", "task", "note", "ttl_ms")  # how a claim was, before a holder had it


def keep_claims(
    tx: Transaction,
    repo: Repository,
    owner: Session,
    task_id: str,
    *,
    name: str,
    kind: SessionKind,
    note: str,
) -> tuple[str, list[dict[str, Any]]]:
    """Move what somebody holds for a task into a holder; tells the holder's session, and how each claim was.

    What was taken by hand for no task goes along, unless it may be for another task in hand.
    """
    has_more = any(task.id != task_id and task.state in AT_WORK for task in tasks_of(tx, owner.id))
    claims = [
        claim
        for claim in claims_of(tx, owner.id)
        if claim.task == task_id or (not claim.task and not has_more)
    ]
    if not claims:
        return "", []
    holder = begin_holder(tx, owner, name, kind)
    drop_claims(tx, claims)
    for claim in claims:
        pattern = repo.git.pattern_of(claim.pattern, claim.kind)
        give_claim(tx, holder, pattern, claim.mode, FOR_EVER_MS, task=claim.task, note=note)
    return holder.id, [{name: getattr(claim, name) for name in _KEPT} for claim in claims]
