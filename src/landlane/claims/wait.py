"""Wait for claims: first come, first served over overlapping sets, with deadlock detection and a limit.

A waiter has a ticket in the store and says every second that it is still there. It is granted its whole set
when nothing held and no earlier ticket is in its way. Before it stands in line, the ring of who waits for
whom is looked for; if its place would close one, it is told so at once instead.
"""

from __future__ import annotations

from landlane.claims.model import Request, Taken, check_request, find_conflict, find_cycle
from landlane.claims.read import claims_near
from landlane.claims.refusal_model import Refused
from landlane.claims.take import take, take_in
from landlane.errors import Malformed
from landlane.patterns.pattern import Pattern
from landlane.sessions.model import Waiter
from landlane.sessions.wait_queue import Place
from landlane.store.lock_areas import areas_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Listener, Snapshot, Transaction


_BEAT_MS = 1000
_ALIVE_MS = 3000  # a waiter that has not been heard of for so long is passed over
_LINE = (
    "//waiting"  # standing in line is judged alone: two half rings must not close behind each other's back
)


def take_or_wait(
    repo: Repository,
    session: Session,
    request: Request,
    wait_ms: int,
    on_wait: Callable[[Refused], None] | None = None,
) -> Taken | Refused:
    """Take claims, waiting for them at most so long; `on_wait` hears once what is waited for.

    Raises:
        Malformed: waiting for part of a set has no meaning.
        Stale: the session is over.
        NotAllowed: its role may not claim this.
    """
    if wait_ms <= 0:
        return take(repo, session, request)
    check_can_wait(request)
    if session.role:
        from landlane.roles.enforce import check_claim  # noqa: PLC0415 - most have no role

        check_claim(repo, session, request.patterns)
    check_request(request, max_ttl_ms=repo.settings.claims.max_ttl_ms)
    listener = repo.store.listen()  # before looking, so that nothing freed in between is missed
    try:
        return _Place(repo, session, request, listener, wait_ms, on_wait).stand()
    finally:
        listener.close()


def check_can_wait(request: Request) -> None:
    """Refuse to wait for a part of a set.

    Raises:
        Malformed: it has no meaning.
    """
    if request.is_partial:
        raise Malformed(
            "--partial takes what is free now; there is nothing to wait for",
            code="PARTIAL_WAIT",
            hint="leave out --partial or --wait",
        )


class _Place(Place):
    """One caller's place in line for claims."""

    def __init__(
        self,
        repo: Repository,
        session: Session,
        request: Request,
        listener: Listener,
        wait_ms: int,
        on_wait: Callable[[Refused], None] | None,
    ) -> None:
        super().__init__(repo, session, listener, wait_ms, on_wait, beat_ms=_BEAT_MS, alive_ms=_ALIVE_MS)
        self._request = request
        self._areas = {**areas_of(request.patterns), _LINE: True}

    def judge(self, tx: Transaction) -> Taken | Refused:
        outcome = take_in(tx, self.repo, self.session, self._request, self.ticket)
        if isinstance(outcome, Refused):
            ring = _ring(tx, self.session, self._request, self.ticket)
            if ring:
                return Refused(refused=outcome.refused, code="WAIT_CYCLE", cycle=ring)
        return outcome

    def has_ended(self, outcome: Any) -> bool:
        return isinstance(outcome, Taken) or bool(outcome.cycle)

    def timed_out(self, outcome: Any) -> Refused:
        return Refused(refused=outcome.refused, code="WAIT_TIMED_OUT")

    def wishes(self) -> tuple[str, str, list[tuple[str, str | None, str]]]:
        request = self._request
        branches = [
            (branch.key, branch.rest, pattern.text)
            for pattern in request.patterns
            for branch in pattern.alternatives
        ]
        return request.mode, request.task, branches

    def areas(self) -> dict[str, bool]:
        return self._areas

    def ends(self, outcome: Any) -> list[int]:
        return [refusal.until for refusal in outcome.refused if not refusal.is_waiting]

    def blockers(self, snapshot: Snapshot) -> set[str]:
        return blockers_of_request(snapshot, self.session.id, self._request, self.ticket)


def blockers_of_request(snapshot: Snapshot, session: str, request: Request, ticket: int | None) -> set[str]:
    """The sessions whose live claims or earlier tickets are in the way of a request."""
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


def _ring(tx: Transaction, session: Session, request: Request, ticket: int | None) -> tuple[str, ...]:
    """The agents that would wait for each other in a ring if this session waited, by name."""
    names = {session.id: session.agent}
    waiting = list_waiters(tx)
    names.update({waiter.session: waiter.agent for waiter in waiting})

    def blockers(of: str) -> set[str]:
        if of == session.id:
            return blockers_of_request(tx, session.id, request, ticket)
        found: set[str] = set()
        for waiter in waiting:
            if waiter.session == of:
                wanted = Pattern(text="", kind="glob", alternatives=waiter.alternatives)
                request_of = Request(patterns=(wanted,), mode=waiter.mode, ttl_ms=0)
                found |= blockers_of_request(tx, of, request_of, waiter.ticket)
        return found

    return tuple(names.get(member, member) for member in find_cycle(session.id, blockers))


def list_waiters(snapshot: Snapshot) -> list[Waiter]:
    """Return the waiters that are alive, in order of arrival."""
    waiters = Waiter.from_rows(snapshot.all("waiters_all"))
    return [waiter for waiter in waiters if waiter.alive_until > snapshot.now]
