"""Look up sessions, renew their leases, and end those whose lease or process is over."""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed, Stale, StoreError, StoreTransient
from landlane.platform.process import Process
from landlane.sessions.extensions import installed
from landlane.sessions.model import Claim, Session, Slot, Waiter
from landlane.values import from_columns, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.platform.process import MachineProcesses
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Store, Transaction
    from landlane.values import Row


def find_session(snapshot: Snapshot, session_id: str) -> Session | None:
    """Return a session, ended or not."""
    row = snapshot.one("session_get", session=session_id)
    return Session.from_row(row) if row is not None else None


def get_session(snapshot: Snapshot, session_id: str) -> Session:
    """Return a session that exists."""
    session = find_session(snapshot, session_id)
    assert session is not None
    return session


def find_live_session(snapshot: Snapshot, session_id: str) -> Session | None:
    """Return a session unless it has ended."""
    session = find_session(snapshot, session_id)
    return session if session is not None and not session.has_ended else None


def lock_live_session(tx: Transaction, session_id: str) -> Session | None:
    """Return a session unless it has ended; it cannot end before the transaction does."""
    row = tx.one("session_lock", session=session_id)
    session = Session.from_row(row) if row is not None else None
    return session if session is not None and not session.has_ended else None


def find_latest_session(snapshot: Snapshot, agent: str) -> Session | None:
    """Return the newest session of an agent, ended or not."""
    row = snapshot.one("session_latest", agent=agent)
    return Session.from_row(row) if row is not None else None


def list_live_sessions(snapshot: Snapshot) -> list[Session]:
    """Return the sessions that have not ended."""
    return [Session.from_row(row) for row in snapshot.all("sessions_live")]


def list_processes(snapshot: Snapshot, session_id: str) -> list[Process]:
    """Return the processes that are registered for a session."""
    return [Process(**row) for row in snapshot.all("processes_of", session=session_id)]


def process_from_row(row: Row) -> Process:
    """Return the process in a row that also has other columns."""
    return from_columns(Process, row)


def current_process(repo: Repository) -> Process:
    """Return this process; one with pid 0 on systems that cannot identify processes."""
    try:
        return repo.processes.current()
    except Malformed:
        return Process(boot_id="", namespace="", pid=0, started=0)


def find_parent(snapshot: Snapshot, session_id: str) -> str:
    """Return the session whose subagent this one is; empty if there is none."""
    row = snapshot.one("parent_of", session=session_id)
    return row["parent"] if row is not None else ""


def find_ancestors(snapshot: Snapshot, session_id: str) -> set[str]:
    """Return the sessions whose subagent this one is, directly or not: what they hold is also its own."""
    ancestors: set[str] = set()
    while (session_id := find_parent(snapshot, session_id)) and session_id not in ancestors:
        ancestors.add(session_id)
    return ancestors


# A process that was started a moment ago may be registered before it is visible everywhere.
_GRACE_MS = 10_000
_SHORT_WAIT_MS = 500  # how long a call that only reads waits for its turn to write
_WEEK_MS = 7 * 86_400_000


class WaitOutcome(StrEnum):
    """How a wait in a queue ended."""

    ANSWERED = "answered"
    LEFT = "left"  # the waiter gave up
    GONE = "gone"  # the waiter or its session ended


def session_over(agent: str) -> Stale:
    """Return the error for a caller whose session has ended."""
    return Stale(
        f"the session of {agent or 'this caller'} is over: it left, or its lease ran out",
        code="SESSION_OVER",
        hint="join and claim again before you change anything; others may hold the paths now",
    )


def require_live(tx: Transaction, session: Session) -> Session:
    """Return the session as it is now, locked, with this call counted as a sign of life.

    Raises:
        Stale: it is over.
    """
    # Locked until the commit, so that no other transaction ends the session, or its claims, meanwhile.
    live = lock_live_session(tx, session.id)
    if live is None:
        raise session_over(session.agent)
    if live.lapses_at <= tx.now:  # something lapsed that the sweep has not reached
        lapse(tx, session.id)
        return require_live(tx, session)
    if live.is_touch_due(tx.now) and tx.run("session_touch", session=session.id):
        live = replace(live, seen_at=tx.now, lapses_at=tx.now + live.shortest_ms)
    return live


def touch(store: Store, session: Session) -> None:
    """Record a sign of life, which renews everything the session holds. Neither journaled nor durable.

    Raises:
        Stale: the session is over.
    """
    if not store.view(lambda snapshot: session.is_touch_due(snapshot.now)):
        return
    try:
        renew_session(store, session, wait_ms=_SHORT_WAIT_MS)
    except StoreTransient:
        return  # the store stayed locked: the next call tries again


def renew_session(store: Store, session: Session, *, wait_ms: int | None = None) -> int:
    """Renew the session and return the time of that; what had lapsed before stays lapsed.

    Raises:
        Stale: the session is over.
    """

    def try_quickly(tx: Transaction) -> int:
        return tx.now if tx.run("session_touch", session=session.id) else 0

    def lapse_and_renew(tx: Transaction) -> int:
        lapse(tx, session.id)
        live = find_live_session(tx, session.id)
        if live is None:
            return 0
        restart_lease(tx, live.id, live.shortest_ms)
        return tx.now

    renewed_at = store.change(try_quickly, is_durable=False, wait_ms=wait_ms)
    renewed_at = renewed_at or store.change(lapse_and_renew, wait_ms=wait_ms)
    if not renewed_at:
        raise session_over(session.agent)
    return renewed_at


def restart_lease(tx: Transaction, session_id: str, shortest_ms: int) -> None:
    """Start all leases of a session again, of which the shortest has this length."""
    lapses_at = tx.now + shortest_ms
    tx.run(
        "session_set_lease", session=session_id, seen_at=tx.now, shortest_ms=shortest_ms, lapses_at=lapses_at
    )


def sweep_if_due(store: Store) -> None:
    """Expire leases before a read; a store that cannot be written is read as it is."""
    if store.view(lambda snapshot: snapshot.one("lapse_due")) is None:
        return
    try:
        store.change(sweep, wait_ms=_SHORT_WAIT_MS)
    except StoreError:
        return


def sweep(tx: Transaction) -> int:
    """Expire all leases that have ended; return the number of sessions concerned."""
    rows = tx.all("sessions_lapsing")
    for row in rows:
        lapse(tx, row["id"])
    for statement in ("lapsed_forget", "reads_forget_old"):
        tx.run(statement, before=tx.now - _WEEK_MS)
    return len(rows)


def lapse(tx: Transaction, session_id: str, *, is_certain: bool = False) -> None:
    """Expire the leases of one session that have ended: some of its claims, or all of it.

    With `is_certain` its claims are looked at even if `lapses_at` says that none has ended.
    """
    session = lock_live_session(tx, session_id)
    if session is None or (session.lapses_at > tx.now and not is_certain):
        return
    next_ends: list[int] = [session.lease_ends_at] if session.lease_ends_at > tx.now else []
    shortest = session.lease_ms
    for claim in Claim.from_rows(tx.all("claims_of", session=session_id)):
        if not claim.is_over(tx.now):
            next_ends.append(claim.until)
            shortest = min(shortest, claim.ttl_ms)
        elif drop_claim(tx, session_id, claim.token):
            _record_lapse(tx, session, claim, claim.until)
    if not next_ends and installed().keeps_lease(tx, session_id):
        next_ends.append(tx.now + session.lease_ms)
    if next_ends:
        lease = {"seen_at": session.seen_at, "shortest_ms": shortest, "lapses_at": min(next_ends)}
        tx.run("session_set_lease", session=session_id, **lease)
    else:
        end_session(tx, session, "session.lapsed", {})


def _record_lapse(tx: Transaction, session: Session, claim: Claim, ended_at: int) -> None:
    note_lost(tx, session.agent, claim, ended_at)
    tx.record("claim.lapsed", session.agent, session.id, {"pattern": claim.pattern, "token": claim.token})
    tx.has_freed = True


def note_lost(tx: Transaction, agent: str, claim: Claim, ended_at: int) -> None:
    """Remember that an agent lost a claim: the next holder saves what it has left there."""
    columns = {name: getattr(claim, name) for name in ("pattern", "kind", "mode", "ttl_ms", "token")}
    tx.run("lapsed_add", agent=agent, ended_at=ended_at, **columns)


def end_session(tx: Transaction, session: Session, kind: str, facts: dict[str, object]) -> list[str]:
    """End a session and all it holds; return the patterns of its claims. `kind` is that of the entry."""
    is_own_will = kind == "session.left"
    freed: list[str] = []
    for claim in Claim.from_rows(tx.all("claims_of", session=session.id)):
        if drop_claim(tx, session.id, claim.token):
            freed.append(claim.pattern)
            if is_own_will:
                tx.run("lapsed_drop", agent=session.agent, pattern=claim.pattern)
                released = {"pattern": claim.pattern, "token": claim.token}
                tx.record("claim.released", session.agent, session.id, released)
            else:
                _record_lapse(tx, session, claim, tx.now)
    for row in tx.all("waiters_of", session=session.id):
        drop_waiter(tx, row["ticket"])
    installed().on_end(tx, session, is_own_will=is_own_will)
    for row in tx.all("slots_of", session=session.id):
        free_slot(tx, session, Slot.from_row(row), kind)
    if is_own_will and not session.role:
        # Processes of a session that lapsed keep running and must not be taken for a person. A process with a
        # role must not get rid of it by leaving.
        tx.run("processes_drop", session=session.id)
    if tx.run("session_end", session=session.id):
        tx.record(kind, session.agent, session.id, {"generation": session.generation, **facts})
    tx.has_freed = True
    return freed


def drop_claim(tx: Transaction, session_id: str, token: int) -> bool:
    """Remove a claim and wake who is next in line for it; return whether it was there."""
    is_dropped = bool(tx.run("claim_drop", session=session_id, token=token))
    if is_dropped:
        tx.freed.add(claim_key(token))
    return is_dropped


def claim_key(token: int) -> str:
    """Return the key under which the end of a claim is announced."""
    return f"c{token}"


def ticket_key(ticket: int) -> str:
    """Return the key under which the end of a wait is announced."""
    return f"t{ticket}"


def free_slot(tx: Transaction, session: Session, slot: Slot, reason: str) -> None:
    """Free a slot; one with an expiry stays in use until then."""
    is_timed = slot.expires_at is not None
    if tx.run("slot_give_up" if is_timed else "slot_drop", token=slot.token):
        facts = {"slot": slot.id, "kind": slot.kind, "place": slot.place, "amount": slot.amount}
        facts |= {"token": slot.token, "reason": reason, "is_timed": is_timed}
        tx.record("slot.freed", session.agent, session.id, facts)
    tx.has_freed = True


def drop_waiter(tx: Transaction, ticket: int, outcome: WaitOutcome = WaitOutcome.GONE) -> None:
    """Remove a waiter from its queue; how long it waited for claims goes into the journal."""
    for waiter in Waiter.from_rows(tx.all("waiter_get", ticket=ticket)):
        if not waiter.is_for_slot:
            waited_ms = max(0, min(tx.now, waiter.alive_until) - waiter.since)
            facts = {"pattern": waiter.patterns[0], "task": waiter.task}
            facts |= {"waited_ms": waited_ms, "outcome": outcome}
            tx.record("wait.ended", waiter.agent, waiter.session, facts)
    tx.run("waiter_drop", ticket=ticket)
    tx.run("waiter_paths_drop", ticket=ticket)
    tx.freed.add(ticket_key(ticket))
    tx.has_freed = True


def end_if_gone(tx: Transaction, session_id: str, processes: MachineProcesses) -> bool:
    """End a session if all its processes have certainly ended; return whether it was ended."""
    if not is_dead(tx, session_id, processes):
        return False
    session = lock_live_session(tx, session_id)
    if session is None or tx.now - session.seen_at < _GRACE_MS:
        return False
    end_session(tx, session, "session.gone", {"reason": "its processes have ended"})
    return True


def is_dead(snapshot: Snapshot, session_id: str, processes: MachineProcesses) -> bool:
    """Return whether a session has registered processes and all of them have certainly ended.

    A subagent runs in the processes of its parent.
    """
    known = list_processes(snapshot, session_id)
    if not known and (parent := find_parent(snapshot, session_id)):
        return is_dead(snapshot, parent, processes)
    return bool(known) and all(processes.is_gone(process) for process in known)


def stay_alive(repo: Repository, session: Session) -> None:
    """Record a sign of life while a command runs or waits; a session that is over does not end it."""
    live = repo.store.view(lambda snapshot: find_live_session(snapshot, session.id))
    if live is None:
        return
    try:
        touch(repo.store, live)
    except Stale:
        return
