"""Journal refused claims, once for each path and holder, so that retries do not flood the journal."""

from __future__ import annotations

from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Refusal
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

_NOUN = "refusal"
_MOST = 1000  # paths that are remembered for each session


def journal_refusals(tx: Transaction, session: Session, refused: Sequence[Refusal]) -> None:
    """Record refusals that are new: the session was not refused this path because of this claim before."""
    document = records.lock(tx, _NOUN, session.id)
    known: dict[str, str] = document["paths"] if document is not None else {}
    new = {refusal.pattern: refusal for refusal in refused if known.get(refusal.pattern) != _cause(refusal)}
    if not new:
        return
    for pattern, refusal in new.items():
        facts: dict[str, object] = {"pattern": pattern, "holder": refusal.holder, "held": refusal.held}
        facts["is_waiting"] = refusal.is_waiting
        tx.record("claim.refused", session.agent, session.id, facts)
        known.pop(pattern, None)
        known[pattern] = _cause(refusal)
    newest = dict(list(known.items())[-_MOST:])
    stored = {"id": session.id, "state": "kept", "session": session.id, "paths": newest}
    records.put_without_entry(tx, _NOUN, stored)


def _cause(refusal: Refusal) -> str:
    """Return what refused a path: the token of a claim, or the session that is next in line."""
    return str(refusal.holders[0].claim.token) if refusal.holders else refusal.session
