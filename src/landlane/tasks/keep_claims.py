"""Keep a task's claims in a holder session while the task waits."""

from __future__ import annotations

from landlane.claims.holder_sessions import FOR_EVER_MS, begin_holder, give_claim, release_rows
from landlane.tasks.model import AT_WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Row


_KEPT = ("pattern", "kind", "mode", "task", "note", "ttl_ms")  # how a claim was, before a holder had it


def keep_claims(
    tx: Change, context: Context, owner: Session, task_id: str, *, name: str, kind: str, note: str
) -> tuple[str, list[dict[str, Any]]]:
    """Move what somebody holds for a task into a holder; tells the holder's session, and how each claim was.

    What was taken by hand for no task goes along, unless it may be for another task in hand.
    """
    has_more = any(
        row[0] != task_id and row[4] in AT_WORK for row in tx.all("tasks_of_session", session=owner.id)
    )
    rows: dict[int, Row] = {
        row[2]: row
        for row in tx.all("claims_of", session=owner.id)
        if row[8] == task_id or (not row[8] and not has_more)
    }
    if not rows:
        return "", []
    holder = begin_holder(tx, owner, name, kind)
    release_rows(tx, list(rows.values()))
    for row in rows.values():
        pattern = context.repository.pattern_of(row[3], row[4])
        give_claim(tx, holder, pattern, row[5], FOR_EVER_MS, task=row[8], note=note)
    kept: list[dict[str, Any]] = [
        dict(zip(_KEPT, (row[3], row[4], row[5], row[8], row[9], row[10]), strict=True))
        for row in rows.values()
    ]
    return holder.id, kept
