"""Leases: renew them on signs of life, expire what has run out, end sessions."""

from __future__ import annotations

from landlane.errors import Stale, StoreError, StoreTransient
from landlane.platform.process_identity import Process
from landlane.sessions.extensions import installed
from landlane.sessions.model import Session, ends_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Context, Processes
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading, Row, Store


# A process that was started a moment ago may be registered before it is visible everywhere.
_GRACE_MS = 10_000
_LOOK_MS = 500  # who only looks does not wait any longer for the right to write


def session_from(row: Row) -> Session:
    """A session from its row."""
    return Session(
        id=row[0],
        agent=row[1],
        generation=row[2],
        kind=row[3],
        role=row[4],
        machine=row[5],
        secret_hash=row[6],
        lease_ms=row[7],
        started_at=row[8],
        seen_at=row[9],
        shortest_ms=row[10],
        lapses_at=row[11],
        ended_at=row[12],
    )


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

    def look(reading: object) -> bool:
        return is_touch_due(session, reading.now)  # type: ignore[attr-defined]

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

    def quick(tx: Change) -> int:
        return tx.now if tx.run("session_touch", session=session.id) else 0

    def thorough(tx: Change) -> int:
        lapse(tx, session.id)
        row = tx.one("session_get", session=session.id)
        if row is None or row[12] is not None:
            return 0
        tx.run(
            "session_set_lease",
            session=session.id,
            seen_at=tx.now,
            shortest_ms=row[10],
            lapses_at=tx.now + row[10],
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
    if store.view(lambda reading: reading.one("lapse_due")) is None:
        return
    try:
        store.change(sweep, wait_ms=_LOOK_MS)
    except StoreError:
        return


def sweep(tx: Change) -> int:
    """End every lease that has run out; tells how many sessions were looked at."""
    rows = tx.all("sessions_lapsing")
    for (session,) in rows:
        lapse(tx, session)
    for statement in ("lapsed_forget", "reads_forget_old"):
        tx.run(statement, before=tx.now - 7 * 86_400_000)
    return len(rows)


def lapse(tx: Change, session_id: str, *, is_certain: bool = False) -> None:
    """End what has run out of one session: some of its claims, or all of it.

    `is_certain`: something has, whatever the session says of itself.
    """
    row = tx.one("session_lock", session=session_id)
    if row is None:
        return
    session = session_from(row)
    if session.ended_at is not None or (session.lapses_at > tx.now and not is_certain):
        return
    session_ends = session.seen_at + session.lease_ms
    next_ends: list[int] = [session_ends] if session_ends > tx.now else []
    shortest = session.lease_ms
    for claim in tx.all("claims_of", session=session_id):
        end = ends_at(claim[11], session.seen_at, claim[10])
        if end > tx.now:
            next_ends.append(end)
            shortest = min(shortest, claim[10])
        elif tx.run("claim_drop", session=session_id, token=claim[2]):
            _record_lapse(tx, session, claim, end)
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


def _record_lapse(tx: Change, session: Session, claim: Row, end: int) -> None:
    tx.run(
        "lapsed_add",
        agent=session.agent,
        pattern=claim[3],
        kind=claim[4],
        mode=claim[5],
        ttl_ms=claim[10],
        token=claim[2],
        ended_at=end,
    )
    tx.record("claim.lapsed", session.agent, session.id, {"pattern": claim[3], "token": claim[2]})
    tx.frees = True


def end_session(tx: Change, session: Session, kind: str, facts: dict[str, object]) -> list[str]:
    """End a session and all it holds; tells the patterns that became free."""
    freed: list[str] = []
    for claim in tx.all("claims_of", session=session.id):
        if tx.run("claim_drop", session=session.id, token=claim[2]):
            freed.append(claim[3])
            if kind == "session.left":
                tx.run("lapsed_drop", agent=session.agent, pattern=claim[3])
                tx.record(
                    "claim.released", session.agent, session.id, {"pattern": claim[3], "token": claim[2]}
                )
            else:
                _record_lapse(tx, session, claim, tx.now)
    for (ticket,) in tx.all("waiters_of", session=session.id):
        drop_waiter(tx, ticket)
    installed().on_end(tx, session, is_own_will=kind == "session.left")
    for slot in tx.all("slots_of", session=session.id):
        free_slot(tx, session, slot, kind)
    if kind == "session.left" and not session.role:
        # Of a session that ended without its will the processes go on, and must not be taken for the person.
        # Nor may whoever has a role get rid of it by leaving.
        tx.run("processes_drop", session=session.id)
    if tx.run("session_end", session=session.id):
        tx.record(kind, session.agent, session.id, {"generation": session.generation, **facts})
    tx.frees = True
    return freed


def free_slot(tx: Change, session: Session, slot: Row, reason: str) -> None:
    """End a slot (a row of `slots_of`); one that counts by time is held by nobody, and counts on."""
    token, slot_id, kind, place, amount, until = slot
    if tx.run("slot_drop" if until is None else "slot_give_up", token=token):
        facts = {"slot": slot_id, "kind": kind, "place": place, "amount": amount, "token": token}
        facts |= {"reason": reason, "is_timed": until is not None}
        tx.record("slot.freed", session.agent, session.id, facts)
    tx.frees = True


def drop_waiter(tx: Change, ticket: int, outcome: str = "gone") -> None:
    """Take a waiter out of the line; how long it stood there for claims is written down."""
    row = tx.one("waiter_get", ticket=ticket)
    if row is not None and not row[5].startswith("//"):  # lines for slots have such keys
        waited_ms = max(0, min(tx.now, row[4]) - row[3])
        facts = {"pattern": row[6], "task": row[2], "waited_ms": waited_ms, "outcome": outcome}
        tx.record("wait.ended", row[1], row[0], facts)
    tx.run("waiter_drop", ticket=ticket)
    tx.run("waiter_paths_drop", ticket=ticket)
    tx.frees = True


def end_if_gone(tx: Change, session_id: str, processes: Processes) -> bool:
    """End a session whose processes have all provably died, so that nobody waits for a corpse."""
    if not is_dead(tx, session_id, processes):
        return False
    row = tx.one("session_lock", session=session_id)
    if row is None or row[12] is not None or tx.now - row[9] < _GRACE_MS:
        return False
    end_session(tx, session_from(row), "session.gone", {"reason": "its processes have ended"})
    return True


def is_dead(reading: Reading, session_id: str, processes: Processes) -> bool:
    """Whether a session has registered processes and all of them have provably ended.

    A subagent has none of its own: it lives in those of its parent.
    """
    known = reading.all("processes_of", session=session_id)
    if not known and (parent := reading.one("parent_of", session=session_id)) is not None:
        return is_dead(reading, parent[0], processes)
    if not known:
        return False

    return all(
        processes.is_gone(Process(boot_id=boot_id, namespace=namespace, pid=pid, started=started))
        for boot_id, namespace, pid, started in known
    )


def stay_alive(context: Context, session: Session) -> None:
    """Running and waiting count as signs of life; a session that is over does not end the command."""
    row = context.store.view(lambda reading: reading.one("session_get", session=session.id))
    if row is None or row[12] is not None:
        return
    try:
        touch(context.store, session_from(row))
    except Stale:
        return
