"""Wait for claims: first come, first served over overlapping sets, with deadlock detection and a limit.

A waiter has a ticket in the store, and every second it writes that it is still alive. It gets its whole set
once nothing in it is held and no earlier ticket overlaps it. Before it starts to wait, it looks for a cycle
of sessions that wait for each other; if it would close one, it is refused at once.
"""

from __future__ import annotations

from landlane.claims.model import Refused, Request, Taken, find_conflict, find_cycle
from landlane.claims.read import claims_near
from landlane.claims.take import check_allowed, take, take_in
from landlane.errors import Malformed
from landlane.patterns.pattern import Pattern, areas_of
from landlane.sessions.model import Waiter
from landlane.sessions.wait_queue import QueuedWait, QueueEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Listener, Snapshot, Transaction


# Only one session at a time may join the queue: two could each close half of a cycle without seeing it.
_JOINING = "//waiting"


def take_or_wait(
    repo: Repository,
    session: Session,
    request: Request,
    wait_ms: int,
    on_wait: Callable[[Refused], None] | None = None,
) -> Taken | Refused:
    """Take claims, waiting for them if necessary; `on_wait` is called once with what is waited for.

    Raises:
        Malformed: a request for part of a set cannot wait.
        Stale: the session is over.
        NotAllowed: its role may not claim this.
    """
    if wait_ms <= 0:
        return take(repo, session, request)
    check_can_wait(request)
    check_allowed(repo, session, request)
    listener = repo.store.listen()  # before the first attempt, so that no release in between is missed
    try:
        return _ClaimWait(repo, session, request, listener, wait_ms, on_wait).run()
    finally:
        listener.close()


def check_can_wait(request: Request) -> None:
    """Refuse to wait for part of a set.

    Raises:
        Malformed: the request is partial.
    """
    if request.is_partial:
        raise Malformed(
            "--partial takes what is free now; there is nothing to wait for",
            code="PARTIAL_WAIT",
            hint="leave out --partial or --wait",
        )


class _ClaimWait(QueuedWait):
    """One session's wait for claims."""

    def __init__(
        self,
        repo: Repository,
        session: Session,
        request: Request,
        listener: Listener,
        wait_ms: int,
        on_wait: Callable[[Refused], None] | None,
    ) -> None:
        super().__init__(repo, session, listener, wait_ms, on_wait)
        self._request = request
        self.areas = {**areas_of(request.patterns), _JOINING: True}

    def attempt(self, tx: Transaction) -> Taken | Refused:
        outcome = take_in(tx, self.repo, self.session, self._request, self.ticket)
        if isinstance(outcome, Refused):
            cycle = _find_cycle(tx, self.session, self._request, self.ticket)
            if cycle:
                return Refused(refused=outcome.refused, code="WAIT_CYCLE", cycle=cycle)
        return outcome

    def is_final(self, outcome: Any) -> bool:
        return isinstance(outcome, Taken) or bool(outcome.cycle)

    def timed_out(self, outcome: Any) -> Refused:
        return Refused(refused=outcome.refused, code="WAIT_TIMED_OUT")

    def queue_entry(self) -> QueueEntry:
        request = self._request
        wanted = [(one, pattern.text) for pattern in request.patterns for one in pattern.alternatives]
        return QueueEntry(mode=request.mode, task=request.task, wanted=tuple(wanted))

    def ends(self, outcome: Any) -> list[int]:
        return [refusal.until for refusal in outcome.refused if not refusal.is_waiting]

    def blockers(self, snapshot: Snapshot) -> set[str]:
        return find_blockers(snapshot, self.session.id, self._request, self.ticket)


def find_blockers(snapshot: Snapshot, session: str, request: Request, ticket: int | None) -> set[str]:
    """Return the sessions whose live claims or earlier tickets conflict with a request."""
    found: set[str] = set()
    for pattern in request.patterns:
        for claim in claims_near(snapshot, pattern.alternatives, session):
            is_others = claim.session != session and not claim.is_over(snapshot.now)
            if is_others and find_conflict(pattern, request.mode, claim) is not None:
                found.add(claim.session)
        for waiter in Waiter.from_rows(snapshot.near("waiters_near", pattern.alternatives, session)):
            is_earlier = ticket is None or waiter.ticket < ticket
            if is_earlier and find_conflict(pattern, request.mode, waiter) is not None:
                found.add(waiter.session)
    return found


def _find_cycle(tx: Transaction, session: Session, request: Request, ticket: int | None) -> tuple[str, ...]:
    """Return the agents that would wait for each other in a cycle if this session waited."""
    waiting = list_waiters(tx)
    names = {session.id: session.agent, **{waiter.session: waiter.agent for waiter in waiting}}

    def blockers(of: str) -> set[str]:
        if of == session.id:
            return find_blockers(tx, session.id, request, ticket)
        found: set[str] = set()
        for waiter in waiting:
            if waiter.session == of:
                wanted = Pattern(text="", kind="glob", alternatives=waiter.alternatives)
                awaited = Request(patterns=(wanted,), mode=waiter.mode, ttl_ms=0)
                found |= find_blockers(tx, of, awaited, waiter.ticket)
        return found

    return tuple(names.get(member, member) for member in find_cycle(session.id, blockers))


def list_waiters(snapshot: Snapshot) -> list[Waiter]:
    """Return the waiters that are alive, in order of arrival."""
    waiters = Waiter.from_rows(snapshot.all("waiters_all"))
    return [waiter for waiter in waiters if waiter.alive_until > snapshot.now]
