"""Sessions that hold claims for queued work: no agent acts in them, and most of their leases never end."""

from __future__ import annotations

from landlane.claims.model import Request
from landlane.claims.read import claims_of
from landlane.claims.take import grant_new
from landlane.ids import digest, new_secret, short_id
from landlane.sessions.leases import restart_lease
from landlane.sessions.model import ClaimMode, SessionKind
from landlane.sessions.read import get_session

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
    """Start a session that only holds claims."""
    session_id = short_id("s")
    facts: dict[str, object] = {
        "generation": 1,
        "kind": kind,
        "role": author.role,
        "machine": author.machine,
        "secret_hash": digest(new_secret()),
        "lease_ms": lease_ms,
    }
    tx.run("session_add", session=session_id, agent=name, **facts)
    tx.record("session.joined", name, session_id, facts)
    return get_session(tx, session_id)


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


def give_kept(tx: Transaction, repo: Repository, kept: Sequence[Mapping[str, Any]], heir: Session) -> None:
    """Give the claims that a holder kept to a session, as they were; its lease starts again."""
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
        if tx.run("claim_drop", session=claim.session, token=claim.token):
            facts: dict[str, object] = {"pattern": claim.pattern, "token": claim.token}
            facts |= {"commit": commit} if commit else {}
            tx.record("claim.released", claim.agent, claim.session, facts)
