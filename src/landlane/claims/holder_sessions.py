"""Sessions that hold claims for queued work: no agent acts for them, and their leases never expire."""

from __future__ import annotations

from landlane.claims.model import Request
from landlane.claims.read import claims_of
from landlane.claims.take import add_claim, claim_for, taken_facts
from landlane.ids import digest, new_secret, short_id
from landlane.sessions.read import find_session
from landlane.store.fencing_tokens import token_of

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
    tx: Transaction, author: Session, name: str, kind: str, lease_ms: int = FOR_EVER_MS
) -> Session:
    """A session that only holds: what it stands for is begun and ended with it, or when its lease is over."""
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
    session = find_session(tx, session_id)
    assert session is not None
    return session


def give_claim(
    tx: Transaction, session: Session, pattern: Pattern, mode: str, ttl_ms: int, *, task: str, note: str = ""
) -> None:
    """Give a session a claim that was another's until now, in the same transaction: nobody is asked."""
    (number,) = tx.next_numbers(1)
    request = Request(patterns=(pattern,), mode=mode, ttl_ms=ttl_ms, task=task, note=note[:300])
    claim = claim_for(pattern, request, session, token_of(tx.epoch, number), tx.now)
    add_claim(tx, claim)
    tx.record("claim.taken", session.agent, session.id, taken_facts(claim), number)


def give_kept(tx: Transaction, repo: Repository, kept: Sequence[Mapping[str, Any]], heir: Session) -> None:
    """Give claims that a holder kept to somebody, as they were; the heir's lease begins anew."""
    has = {(claim.pattern, claim.mode) for claim in claims_of(tx, heir.id)}
    shortest = heir.shortest_ms
    for claim in kept:
        if (claim["pattern"], claim["mode"]) in has:
            continue
        pattern = repo.git.pattern_of(claim["pattern"], claim["kind"])
        ttl_ms = int(claim["ttl_ms"])
        shortest = min(shortest, ttl_ms)
        give_claim(tx, heir, pattern, claim["mode"], ttl_ms, task=claim["task"], note=claim["note"])
    tx.run(
        "session_set_lease",
        session=heir.id,
        seen_at=tx.now,
        shortest_ms=shortest,
        lapses_at=tx.now + shortest,
    )


def drop_claims(tx: Transaction, claims: Sequence[Claim], commit: str = "") -> None:
    """Release claims of any session, as far as they are still there."""
    for claim in claims:
        if tx.run("claim_drop", session=claim.session, token=claim.token):
            facts: dict[str, object] = {"pattern": claim.pattern, "token": claim.token}
            facts |= {"commit": commit} if commit else {}
            tx.record("claim.released", claim.agent, claim.session, facts)
