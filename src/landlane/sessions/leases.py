"""Leases: renew them on signs of life, expire what has run out, end sessions."""

from __future__ import annotations

from landlane.errors import Stale, StoreError, StoreTransient
from landlane.sessions.extensions import installed
from landlane.sessions.model import Claim, HeldSlot, Session, Waiter
from landlane.sessions.read import find_live_session, find_parent, list_processes, lock_live_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Processes, Repository
    from landlane.store.interface import Snapshot, Store, Transaction


# A process that was started a moment ago may be registered before it is visible everywhere.
_GRACE_MS = 10_000
_LOOK_MS = 500  # who only looks does not wait any longer for the right to write


def session_over(agent: str) -> Stale:
    """The caller's session has ended; what it held may belong to others now."""
    return Stale(
        f"the session of {agent or 'this caller'} is over: it left, or its lease ran out",
        code="SESSION_OVER",
        hint="join again and claim anew before changing anything; what was held may belong to others now",
    )


def is_touch_due(session: Session, now: int) -> bool:
    """Whether the last sign of life is old enough to be worth a write: a third of the shortest lease."""
    return now - session.seen_at > session.shortest_ms // 3


def touch(store: Store, session: Session) -> None:
    """A sign of life: renew everything the session holds. Not journaled, and not forced to the disk.

    Raises:
        Stale: the session is over.
    """

    def look(snapshot: object) -> bool:
        return is_touch_due(session, snapshot.now)  # type: ignore[attr-defined]

    if not store.view(look):
        return
    try:
        renew_session(store, session, wait_ms=_LOOK_MS)
    except StoreTransient:
        return  # somebody has been writing for long: the next call tries again


def renew_session(store: Store, session: Session, *, wait_ms: int | None = None) -> int:
    """Renew the session now, and tell the instant; what had lapsed before stays lapsed.

    Raises:
        Stale: the session is over.
    """

    def quick(tx: Transaction) -> int:
        return tx.now if tx.run("session_touch", session=session.id) else 0

    def thorough(tx: Transaction) -> int:
        lapse(tx, session.id)
        live = find_live_session(tx, session.id)
        if live is None:
            return 0
        tx.run(
            "session_set_lease",
            session=session.id,
            seen_at=tx.now,
            shortest_ms=live.shortest_ms,
            lapses_at=tx.now + live.shortest_ms,
        )
        return tx.now

    renewed_at = store.change(quick, is_durable=False, wait_ms=wait_ms) or store.change(
        thorough, wait_ms=wait_ms
    )
    if not renewed_at:
        raise session_over(session.agent)
    return renewed_at


def sweep_if_due(store: Store) -> None:
    """End what has lapsed, when somebody only looks; a store that cannot be written is looked at as it is."""
    if store.view(lambda snapshot: snapshot.one("lapse_due")) is None:
        return
    try:
        store.change(sweep, wait_ms=_LOOK_MS)
    except StoreError:
        return


def sweep(tx: Transaction) -> int:
    """End every lease that has run out; tells how many sessions were looked at."""
    rows = tx.all("sessions_lapsing")
    for row in rows:
        lapse(tx, row["id"])
    for statement in ("lapsed_forget", "reads_forget_old"):
        tx.run(statement, before=tx.now - 7 * 86_400_000)
    return len(rows)


def lapse(tx: Transaction, session_id: str, *, is_certain: bool = False) -> None:
    """End what has run out of one session: some of its claims, or all of it.

    `is_certain`: something has, whatever the session says of itself.
    """
    session = lock_live_session(tx, session_id)
    if session is None or (session.lapses_at > tx.now and not is_certain):
        return
    next_ends: list[int] = [session.lease_ends_at] if session.lease_ends_at > tx.now else []
    shortest = session.lease_ms
    for claim in Claim.from_rows(tx.all("claims_of", session=session_id)):
        if claim.until > tx.now:
            next_ends.append(claim.until)
            shortest = min(shortest, claim.ttl_ms)
        elif tx.run("claim_drop", session=session_id, token=claim.token):
            _record_lapse(tx, session, claim, claim.until)
    if not next_ends and installed().keeps_lease(tx, session_id):
        next_ends.append(tx.now + session.lease_ms)  # its lease stands still until it has an answer
    if next_ends:
        tx.run(
            "session_set_lease",
            session=session_id,
            seen_at=session.seen_at,
            shortest_ms=shortest,
            lapses_at=min(next_ends),
        )
    else:
        end_session(tx, session, "session.lapsed", {})


def _record_lapse(tx: Transaction, session: Session, claim: Claim, ended_at: int) -> None:
    tx.run(
        "lapsed_add",
        agent=session.agent,
        pattern=claim.pattern,
        kind=claim.kind,
        mode=claim.mode,
        ttl_ms=claim.ttl_ms,
        token=claim.token,
        ended_at=ended_at,
    )
    tx.record("claim.lapsed", session.agent, session.id, {"pattern": claim.pattern, "token": claim.token})
    tx.frees = True


def end_session(tx: Transaction, session: Session, kind: str, facts: dict[str, object]) -> list[str]:
    """End a session and all it holds; tells the patterns that became free."""
    freed: list[str] = []
    for claim in Claim.from_rows(tx.all("claims_of", session=session.id)):
        if tx.run("claim_drop", session=session.id, token=claim.token):
            freed.append(claim.pattern)
            if kind == "session.left":
                tx.run("lapsed_drop", agent=session.agent, pattern=claim.pattern)
                facts_of_claim = {"pattern": claim.pattern, "token": claim.token}
                tx.record("claim.released", session.agent, session.id, facts_of_claim)
            else:
                _record_lapse(tx, session, claim, tx.now)
    for row in tx.all("waiters_of", session=session.id):
        drop_waiter(tx, row["ticket"])
    installed().on_end(tx, session, is_own_will=kind == "session.left")
    for row in tx.all("slots_of", session=session.id):
        free_slot(tx, session, HeldSlot.from_row(row), kind)
    if kind == "session.left" and not session.role:
        # Of a session that ended without its will the processes go on, and must not be taken for the person.
        # Nor may whoever has a role get rid of it by leaving.
        tx.run("processes_drop", session=session.id)
    if tx.run("session_end", session=session.id):
        tx.record(kind, session.agent, session.id, {"generation": session.generation, **facts})
    tx.frees = True
    return freed


def free_slot(tx: Transaction, session: Session, slot: HeldSlot, reason: str) -> None:
    """Free a slot; one that is taken for a fixed time is used up until then."""
    is_timed = slot.expires_at is not None
    if tx.run("slot_give_up" if is_timed else "slot_drop", token=slot.token):
        facts = {"slot": slot.id, "kind": slot.kind, "place": slot.place, "amount": slot.amount}
        facts |= {"token": slot.token, "reason": reason, "is_timed": is_timed}
        tx.record("slot.freed", session.agent, session.id, facts)
    tx.frees = True


def drop_waiter(tx: Transaction, ticket: int, outcome: str = "gone") -> None:
    """Take a waiter out of the line; how long it stood there for claims is written down."""
    for waiter in Waiter.from_rows(tx.all("waiter_get", ticket=ticket)):
        if not waiter.is_for_slot:
            waited_ms = max(0, min(tx.now, waiter.alive_until) - waiter.since)
            facts = {"pattern": waiter.patterns[0], "task": waiter.task}
            facts |= {"waited_ms": waited_ms, "outcome": outcome}
            tx.record("wait.ended", waiter.agent, waiter.session, facts)
    tx.run("waiter_drop", ticket=ticket)
    tx.run("waiter_paths_drop", ticket=ticket)
    tx.frees = True


def end_if_gone(tx: Transaction, session_id: str, processes: Processes) -> bool:
    """End a session whose processes have all provably died, so that nobody waits for a corpse."""
    if not is_dead(tx, session_id, processes):
        return False
    session = lock_live_session(tx, session_id)
    if session is None or tx.now - session.seen_at < _GRACE_MS:
        return False
    end_session(tx, session, "session.gone", {"reason": "its processes have ended"})
    return True


def is_dead(snapshot: Snapshot, session_id: str, processes: Processes) -> bool:
    """Whether a session has registered processes and all of them have provably ended.

    A subagent has none of its own: it lives in those of its parent.
    """
    known = list_processes(snapshot, session_id)
    if not known and (parent := find_parent(snapshot, session_id)):
        return is_dead(snapshot, parent, processes)
    return bool(known) and all(processes.is_gone(process) for process in known)


def stay_alive(repo: Repository, session: Session) -> None:
    """Running and waiting count as signs of life; a session that is over does not end the command."""
    live = repo.store.view(lambda snapshot: find_live_session(snapshot, session.id))
    if live is None:
        return
    try:
        touch(repo.store, live)
    except Stale:
        return
