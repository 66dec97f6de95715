"""Standing in line for claims: first come, first served over overlapping sets, and never for ever.

A waiter has a ticket in the store and says every second that it is still there. It is granted its whole set
when nothing held and no earlier ticket is in its way. Before it stands in line, the ring of who waits for
whom is looked for; if its place would close one, it is told so at once instead.
"""

from __future__ import annotations

from interlock.domain.claims import Refused, Taken, areas_of, check_request, find_cycle, is_in_the_way
from interlock.domain.patterns import Branch, Pattern
from interlock.errors import Malformed
from interlock.operations.claims import is_over, take, take_in
from interlock.operations.leases import drop_waiter, is_dead, is_touch_due, session_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.domain.agents import Session
    from interlock.domain.claims import Request
    from interlock.operations.context import Context
    from interlock.ports.store import Change, Listener, Reading

_BEAT_MS = 1000
_ALIVE_MS = 3000  # a waiter that has not been heard of for so long is passed over
_FORGET_MS = 60_000
_LINE = (
    "//waiting"  # standing in line is judged alone: two half rings must not close behind each other's back
)


def take_or_wait(
    context: Context,
    session: Session,
    request: Request,
    wait_ms: int,
    on_wait: Callable[[Refused], None] | None = None,
) -> Taken | Refused:
    """Take claims, waiting for them at most so long; `on_wait` hears once what is waited for.

    Raises:
        Malformed: waiting for part of a set has no meaning.
        Stale: the session is over.
    """
    if request.is_partial and wait_ms > 0:
        raise Malformed(
            "--partial takes what is free now; there is nothing to wait for",
            code="PARTIAL_WAIT",
            hint="leave out --partial or --wait",
        )
    if wait_ms <= 0:
        return take(context, session, request)
    check_request(request, max_ttl_ms=context.settings.claim_max_ttl_ms)
    listener = context.store.listen()  # before looking, so that nothing freed in between is missed
    try:
        return _Place(context, session, request, listener, wait_ms, on_wait).stand()
    finally:
        listener.close()


class _Place:
    """One caller's place in line."""

    def __init__(
        self,
        context: Context,
        session: Session,
        request: Request,
        listener: Listener,
        wait_ms: int,
        on_wait: Callable[[Refused], None] | None,
    ) -> None:
        self._context = context
        self._session = session
        self._request = request
        self._listener = listener
        self._wait_ms = wait_ms
        self._on_wait = on_wait
        self._areas = {**areas_of(request.patterns), _LINE: True}
        self._ticket: int | None = None
        self._now = 0

    def stand(self) -> Taken | Refused:
        outcome = self._attempt()
        deadline = self._now + self._wait_ms
        if isinstance(outcome, Refused) and not outcome.cycle and self._on_wait is not None:
            self._on_wait(outcome)
        try:
            while isinstance(outcome, Refused) and not outcome.cycle:
                if self._now >= deadline:
                    return Refused(refused=outcome.refused, code="WAIT_TIMED_OUT")
                self._sleep(deadline, outcome)
                outcome = self._attempt() if self._looks_free() else self._stay(outcome)
            return outcome
        finally:
            self._leave_line()

    def _attempt(self) -> Taken | Refused:
        """Judge again, and take or (first time) stand in line, all in one transaction."""

        def work(tx: Change) -> tuple[Taken | Refused, int | None, int]:
            self._forget_silent(tx)
            outcome = take_in(tx, self._context, self._session, self._request, self._ticket)
            ticket = self._ticket
            if isinstance(outcome, Taken):
                if ticket is not None:
                    drop_waiter(tx, ticket)
                return outcome, None, tx.now
            ring = _ring(tx, self._session, self._request, ticket)
            if ring:
                return Refused(refused=outcome.refused, code="WAIT_CYCLE", cycle=ring), ticket, tx.now
            if ticket is None or not tx.run("waiter_beat", ticket=ticket, alive_until=tx.now + _ALIVE_MS):
                ticket = self._stand_in_line(tx)
            return outcome, ticket, tx.now

        outcome, self._ticket, self._now = self._context.change(work, areas=self._areas)
        return outcome

    def _stand_in_line(self, tx: Change) -> int:
        row = tx.one("waiter_next_ticket")
        assert row is not None
        # Never a ticket that was used before: who was forgotten must not find another in its place.
        ticket = max(int(row[0]), tx.now)
        request = self._request
        tx.run(
            "waiter_add",
            ticket=ticket,
            session=self._session.id,
            mode=request.mode,
            task=request.task,
            alive_until=tx.now + _ALIVE_MS,
        )
        branches = [(branch, pattern.text) for pattern in request.patterns for branch in pattern.branches]
        for index, (branch, text) in enumerate(branches):
            tx.run(
                "waiter_path_add", key=branch.key, ticket=ticket, branch=index, rest=branch.rest, pattern=text
            )
        return ticket

    def _forget_silent(self, tx: Change) -> None:
        if tx.has_waiters:
            for (ticket,) in tx.all("waiters_silent", before=tx.now - _FORGET_MS):
                drop_waiter(tx, ticket)

    def _sleep(self, deadline: int, outcome: Refused) -> None:
        """Until somebody frees something, a lease in the way ends, or it is time to say we are here."""
        # An end that has passed was put off by a renewal; the next beat looks again.
        ends = [
            refusal.until
            for refusal in outcome.refused
            if not refusal.is_waiting and refusal.until > self._now
        ]
        wake_at = min([self._now + _BEAT_MS, deadline, *(end + 1 for end in ends)])
        wait_until = max(wake_at - self._now, 1) / 1000
        heard = self._listener.wait(wait_until)
        while heard == "entry":  # somebody took something: that frees nothing for us
            wait_until = max(wake_at - self._look_at_clock(), 0) / 1000
            heard = self._listener.wait(wait_until) if wait_until else ""

    def _look_at_clock(self) -> int:
        return self._context.store.view(lambda reading: reading.now)

    def _looks_free(self) -> bool:
        """A cheap look without a lock; only when it says yes is a transaction worth its price."""

        def look(reading: Reading) -> tuple[bool, int]:
            blockers = blockers_of_request(reading, self._session.id, self._request, self._ticket)
            is_free = all(is_dead(reading, blocker, self._context.processes) for blocker in blockers)
            return is_free, reading.now

        is_free, self._now = self._context.store.view(look)
        return is_free

    def _stay(self, outcome: Refused) -> Taken | Refused:
        """Say that we are still here, which counts as a sign of life for all that the session holds.

        A ring that closed meanwhile is found by the next full attempt.
        """

        def beat(tx: Change) -> bool:
            row = tx.one("session_get", session=self._session.id)
            if row is not None and is_touch_due(session_from(row), tx.now):
                tx.run("session_touch", session=self._session.id)
            return bool(tx.run("waiter_beat", ticket=self._ticket, alive_until=tx.now + _ALIVE_MS))

        if self._context.store.change(beat, is_durable=False):
            return outcome
        return self._attempt()  # we were forgotten while we slept: judge anew

    def _leave_line(self) -> None:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._context.store.change(lambda tx: drop_waiter(tx, ticket))


def blockers_of_request(reading: Reading, session: str, request: Request, ticket: int | None) -> set[str]:
    """The sessions whose live claims or earlier tickets are in the way of a request."""
    found: set[str] = set()
    for pattern in request.patterns:
        for row in reading.near("claims_near", pattern.branches, session):
            if (
                row[6] != session
                and not is_over(row, reading.now)
                and _is_between(pattern, request.mode, row, 5)
            ):
                found.add(row[6])
        for row in reading.near("waiters_near", pattern.branches, session):
            if (ticket is None or row[3] < ticket) and _is_between(pattern, request.mode, row, 6):
                found.add(row[4])
    return found


def _is_between(pattern: Pattern, mode: str, row: tuple[object, ...], mode_at: int) -> bool:
    return is_in_the_way(pattern, mode, Branch(key=str(row[0]), rest=row[1]), str(row[mode_at]))  # type: ignore[arg-type]


def _ring(tx: Change, session: Session, request: Request, ticket: int | None) -> tuple[str, ...]:
    """The agents that would wait for each other in a ring if this session waited, by name."""
    names = {session.id: session.agent}
    waiting = [row for row in tx.all("waiters_all") if row[6] > tx.now]
    names.update({row[1]: row[2] for row in waiting})

    def blockers(of: str) -> set[str]:
        if of == session.id:
            return blockers_of_request(tx, session.id, request, ticket)
        found: set[str] = set()
        for row in waiting:
            if row[1] == of:
                found |= _blockers_of_waiter(tx, row)
        return found

    return tuple(names.get(member, member) for member in find_cycle(session.id, blockers))


def _blockers_of_waiter(tx: Change, waiter: tuple[object, ...]) -> set[str]:
    branches = tuple(Branch(key=row[0], rest=row[1]) for row in tx.all("waiter_paths_of", ticket=waiter[0]))
    from interlock.domain.claims import Request  # noqa: PLC0415 - waiting in rings is rare

    wanted = Pattern(text="", kind="glob", branches=branches)
    request = Request(patterns=(wanted,), mode=str(waiter[3]), ttl_ms=0)
    return blockers_of_request(tx, str(waiter[1]), request, int(str(waiter[0])))


def describe_line(reading: Reading) -> list[dict[str, object]]:
    """Who waits for what, in order, for people to look at."""
    return [
        {
            "ticket": row[0],
            "agent": row[2],
            "mode": row[3],
            "since_at": row[5],
            "patterns": list(
                dict.fromkeys(path[2] for path in reading.all("waiter_paths_of", ticket=row[0]))
            ),
        }
        for row in reading.all("waiters_all")
        if row[6] > reading.now
    ]
