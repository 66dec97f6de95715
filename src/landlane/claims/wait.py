"""Wait for claims: first come, first served over overlapping sets, with deadlock detection and a limit.

A waiter has a ticket in the store, and writes from time to time that it is still alive. It gets its full set
once nothing in it is held and no earlier ticket overlaps it. It watches only the nearest ticket ahead of it,
or a claim in the way, so a release wakes the next in line and not everybody. Before it starts to wait, it
looks for a cycle of sessions that wait for each other; if it would close one, it is refused at once.
"""

from __future__ import annotations

from landlane.claims.describe import earlier_waiters, list_waiters, waiters_before
from landlane.claims.model import Refused, Request, Taken, check_can_wait, find_conflict, find_cycle
from landlane.claims.take import (
    check_allowed,
    claims_near,
    claims_of,
    describe_refused,
    take_in,
    take_or_wait,
)
from landlane.patterns.pattern import GLOB, Pattern, areas_of
from landlane.sessions.leases import claim_key, ticket_key
from landlane.sessions.model import lease_end
from landlane.sessions.wait_queue import Blocker, QueuedWait, QueueEntry
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from landlane.claims.model import Claim
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction


# Only one session at a time may join the queue: two could each close half of a cycle without seeing it.
_JOINING = "//waiting"
_WAITS = Refused(refused=())  # described only when somebody asks: see `take_or_wait`


def wait_for_claims(
    repo: Repository,
    session: Session,
    request: Request,
    wait_ms: int,
    on_wait: Callable[[Refused], None] | None = None,
    on_beat: Callable[[Refused], None] | None = None,
) -> Taken | Refused:
    """Take claims as soon as they are free; `on_wait` is called once with what is waited for.

    `on_beat` is called about every second while it waits, with the caller's current place in line.

    Raises:
        Malformed: a request for part of a set cannot wait.
        Stale: the session is over.
        NotAllowed: its role may not claim this.
    """
    check_can_wait(request)
    check_allowed(repo, session, request)
    wait = _ClaimWait(repo, session, request, on_beat)
    outcome = wait.run(wait_ms, on_wait)
    return replace(outcome, waited_ms=wait.waited_ms)


class _ClaimWait(QueuedWait):
    """One session's wait for claims."""

    def __init__(
        self,
        repo: Repository,
        session: Session,
        request: Request,
        on_beat: Callable[[Refused], None] | None,
    ) -> None:
        super().__init__(repo, session, {**areas_of(request.patterns), _JOINING: True})
        self._request = request
        self._on_beat = on_beat

    def attempt(self, tx: Transaction) -> Taken | Refused:
        taken = take_or_wait(tx, self.repo, self.session, self._request, self.ticket)
        if taken is not None:
            return taken
        cycle = _find_cycle(tx, self.session, self._request, self.ticket)
        if cycle:
            refused = describe_refused(tx, self.session, self._request, self.ticket) or _WAITS
            return replace(refused, code="WAIT_CYCLE", cycle=cycle)
        return _WAITS

    def is_final(self, outcome: Any) -> bool:
        return isinstance(outcome, Taken) or bool(outcome.cycle)

    def begins(self, on_wait: Callable[[Any], None], outcome: Any) -> None:
        del outcome
        refused = self.repo.store.view(self._describe)
        if refused is not None:  # else it was freed meanwhile
            on_wait(refused)

    def waits_on(self, outcome: Any) -> None:
        del outcome
        if self._on_beat is not None:
            refused = self.repo.store.view(self._describe)
            if refused is not None:
                self._on_beat(replace(refused, waited_ms=self.waited_ms))

    def _describe(self, snapshot: Snapshot) -> Refused | None:
        """Return what is in the way now, with the place that the caller has in line."""
        return describe_refused(snapshot, self.session, self._request, self.ticket)

    def last_attempt(self, tx: Transaction) -> Taken | Refused:
        outcome = take_in(tx, self.repo, self.session, self._request, self.ticket)
        return replace(outcome, code="WAIT_TIMED_OUT") if isinstance(outcome, Refused) else outcome

    def queue_entry(self) -> QueueEntry:
        request = self._request
        wanted = [(one, pattern.text) for pattern in request.patterns for one in pattern.alternatives]
        return QueueEntry(mode=request.mode, task=request.task, wanted=tuple(wanted))

    def find_blocker(self, snapshot: Snapshot) -> Blocker | None:
        me, request = self.session.id, self._request
        nearest = 0, ""
        for pattern in request.patterns:
            for waiter in waiters_before(snapshot, me, request, pattern, self.ticket):
                if waiter.ticket <= nearest[0]:
                    break
                if not self.is_dead(snapshot, waiter.session):
                    nearest = waiter.ticket, waiter.session
                    break
        ticket, session = nearest
        if ticket:
            return Blocker(session=session, key=ticket_key(ticket))
        for pattern in request.patterns:
            for claim in _claims_in_the_way(snapshot, me, request, pattern):
                if not self.is_dead(snapshot, claim.session):
                    key = claim_key(claim.token)
                    return Blocker(session=claim.session, key=key, token=claim.token, ends_at=claim.until)
        return None

    def is_blocked_by(self, snapshot: Snapshot, blocker: Blocker) -> bool:
        if blocker.token:
            row = snapshot.one("claim_end", session=blocker.session, token=blocker.token)
            is_there = row is not None and lease_end(**row) > snapshot.now
        else:
            row = snapshot.one("waiter_alive", ticket=int(blocker.key[1:]))
            is_there = row is not None
        return is_there and not self.is_dead(snapshot, blocker.session)


def find_blockers(snapshot: Snapshot, session: str, request: Request, ticket: int | None) -> set[str]:
    """Return the sessions whose live claims or earlier tickets conflict with a request."""
    found: set[str] = set()
    for pattern in request.patterns:
        found.update(one.session for one in _claims_in_the_way(snapshot, session, request, pattern))
        found.update(one.session for one in earlier_waiters(snapshot, session, request, pattern, ticket))
    return found


def _claims_in_the_way(
    snapshot: Snapshot, session: str, request: Request, pattern: Pattern
) -> Iterator[Claim]:
    for claim in claims_near(snapshot, pattern.alternatives, session):
        is_others = claim.session != session and not claim.is_over(snapshot.now)
        if is_others and find_conflict(pattern, request.mode, claim) is not None:
            yield claim


def _may_be_awaited(tx: Transaction, session: Session, ticket: int | None) -> bool:
    """Return whether others may wait for this session; if not, it cannot be part of a cycle."""
    if ticket is not None or tx.all("slots_of", session=session.id):
        return True
    held = [part for claim in claims_of(tx, session.id) for part in claim.alternatives]
    return bool(held and tx.near("waiters_near", held, session.id))


def _find_cycle(tx: Transaction, session: Session, request: Request, ticket: int | None) -> tuple[str, ...]:
    """Return the agents that would wait for each other in a cycle if this session waited."""
    if not _may_be_awaited(tx, session, ticket):
        return ()
    waiting = list_waiters(tx)
    names = {session.id: session.agent, **{waiter.session: waiter.agent for waiter in waiting}}

    def blockers(of: str) -> set[str]:
        if of == session.id:
            return find_blockers(tx, session.id, request, ticket)
        found: set[str] = set()
        for waiter in waiting:
            if waiter.session == of:
                wanted = Pattern(text="", kind=GLOB, alternatives=waiter.alternatives)
                awaited = Request(patterns=(wanted,), mode=waiter.mode, ttl_ms=0)
                found |= find_blockers(tx, of, awaited, waiter.ticket)
        return found

    return tuple(names.get(member, member) for member in find_cycle(session.id, blockers))
