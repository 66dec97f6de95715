"""Holders: sessions that keep the claims of what waits; nobody acts for them, and they never lapse."""

from __future__ import annotations

from landlane.claims.model import Request, token_of
from landlane.claims.take import claim_for, taken_facts
from landlane.ids import digest, new_secret, short_id
from landlane.sessions.leases import session_from
from landlane.tasks.model import AT_WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.context import Context
    from landlane.patterns.pattern import Pattern
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Row

_KEPT = ("pattern", "kind", "mode", "task", "note", "ttl_ms")  # how a claim was, before a holder had it
FOR_EVER_MS = 100 * 365 * 86_400_000


def begin_holder(tx: Change, author: Session, name: str, kind: str, lease_ms: int = FOR_EVER_MS) -> Session:
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
    row = tx.one("session_get", session=session_id)
    assert row is not None
    return session_from(row)


def give_claim(
    tx: Change, session: Session, pattern: Pattern, mode: str, ttl_ms: int, *, task: str, note: str = ""
) -> None:
    """Give a session a claim that was another's until now, in the same transaction: nobody is asked."""
    (number,) = tx.next_numbers(1)
    request = Request(patterns=(pattern,), mode=mode, ttl_ms=ttl_ms, task=task, note=note[:300])
    claim = claim_for(pattern, request, session, token_of(tx.epoch, number), tx.now)
    for index, branch in enumerate(pattern.branches):
        tx.run(
            "claim_add",
            key=branch.key,
            token=claim.token,
            branch=index,
            rest=branch.rest,
            session=session.id,
            pattern=claim.pattern,
            kind=claim.kind,
            mode=mode,
            ttl_ms=claim.ttl_ms,
            granted_at=tx.now,
            task=claim.task,
            note=claim.note,
        )
    tx.record("claim.taken", session.agent, session.id, taken_facts(claim), number)


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


def give_kept(tx: Change, context: Context, kept: Sequence[Mapping[str, Any]], heir: Session) -> None:
    """Give claims that a holder kept to somebody, as they were; the heir's lease begins anew."""
    has = {(row[3], row[5]) for row in tx.all("claims_of", session=heir.id)}
    shortest = heir.shortest_ms
    for claim in kept:
        if (claim["pattern"], claim["mode"]) in has:
            continue
        pattern = context.repository.pattern_of(claim["pattern"], claim["kind"])
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


def release_rows(tx: Change, rows: Sequence[Row], commit: str = "") -> None:
    """Give back the claims in these rows, each once."""
    dropped: set[int] = set()
    for row in rows:
        if row[2] not in dropped and tx.run("claim_drop", session=row[6], token=row[2]):
            dropped.add(row[2])
            facts: dict[str, object] = {"pattern": row[3], "token": row[2]}
            tx.record("claim.released", row[7], row[6], facts | ({"commit": commit} if commit else {}))
