"""Sessions that hold claims for queued work: no agent acts in them, and most of their leases never end."""

from __future__ import annotations

from landlane.claims.model import Request
from landlane.claims.take import claims_of, grant_new
from landlane.ids import new_secret
from landlane.sessions.join import add_session
from landlane.sessions.leases import (
    drop_claim,
    end_session,
    find_latest_session,
    lock_live_session,
    restart_lease,
)
from landlane.sessions.model import ClaimMode, SessionKind
from landlane.sessions.notices import add_notice, list_unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Claim, Session
    from landlane.store.interface import Transaction


FOR_EVER_MS = 100 * 365 * 86_400_000


def begin_holder(
    tx: Transaction, author: Session, name: str, kind: SessionKind, lease_ms: int = FOR_EVER_MS
) -> Session:
    """Start a session that only holds claims, under the id of the record that it holds them for."""
    last = find_latest_session(tx, name)
    return add_session(
        tx,
        name,
        generation=last.generation + 1 if last is not None else 1,
        kind=kind,
        role=author.role,
        machine=author.machine,
        secret=new_secret(),
        lease_ms=lease_ms,
    )


def give_claim(
    tx: Transaction,
    session: Session,
    pattern: Pattern,
    mode: ClaimMode,
    ttl_ms: int,
    *,
    task: str,
    note: str = "",
) -> None:
    """Give a session a claim that another one held until now, in the same transaction."""
    (number,) = tx.next_numbers(1)
    request = Request(patterns=(pattern,), mode=mode, ttl_ms=ttl_ms, task=task, note=note[:300])
    grant_new(tx, session, request, pattern, number)


def end_holder(tx: Transaction, holder_id: str, heir_id: str = "") -> None:
    """Release what a holder has and end its session; the heir, if there is one, gets its unread notices."""
    holder = lock_live_session(tx, holder_id) if holder_id else None
    if holder is None:
        return
    for notice in list_unread(tx, holder_id) if heir_id else ():
        add_notice(tx, heir_id, str(notice["text"]))
    drop_claims(tx, claims_of(tx, holder_id))
    end_session(tx, holder, "session.left", {})
    tx.has_freed = True


def return_claims(
    tx: Transaction, repo: Repository, holder_id: str, kept: Sequence[Mapping[str, Any]], heir: Session
) -> None:
    """End a holder and give its claims to a session, as they were; the lease of that session starts again."""
    end_holder(tx, holder_id, heir.id)
    has = {(claim.pattern, claim.mode) for claim in claims_of(tx, heir.id)}
    shortest = heir.shortest_ms
    for claim in kept:
        mode, ttl_ms = ClaimMode(claim["mode"]), int(claim["ttl_ms"])
        if (claim["pattern"], mode) in has:
            continue
        pattern = repo.git.pattern_of(claim["pattern"], claim["kind"])
        shortest = min(shortest, ttl_ms)
        give_claim(tx, heir, pattern, mode, ttl_ms, task=claim["task"], note=claim["note"])
    restart_lease(tx, heir.id, shortest)


def drop_claims(tx: Transaction, claims: Sequence[Claim], commit: str = "") -> None:
    """Release claims of any session that are still there."""
    for claim in claims:
        if drop_claim(tx, claim.session, claim.token):
            facts: dict[str, object] = {"pattern": claim.pattern, "token": claim.token}
            facts |= {"commit": commit} if commit else {}
            tx.record("claim.released", claim.agent, claim.session, facts)
