"""Wait for something to be released: queue, sleep until woken, renew, give up.

Callers decide what is waited for (claims/wait.py for claims, state/slots.py for slots). All queues share one
table of tickets: the ticket says who came first, a session that ends leaves all queues, and a waiter that
gave no sign of life for a few seconds is skipped.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from landlane.errors import StoreTransient
from landlane.sessions.leases import drop_waiter, is_dead, is_touch_due
from landlane.sessions.read import find_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Listener, Snapshot, Transaction

BEAT_MS = 1000
ALIVE_MS = 3000  # a waiter that has not been heard of for so long is passed over
_FORGET_MS = 60_000
_AWAY, _AMBIGUOUS = "STORE_UNREACHABLE", "STORE_AMBIGUOUS"
_AWAY_SECONDS = 60.0  # that a database may be away while somebody waits
_AGAIN_SECONDS = 0.5


class Place(ABC):
    """One caller's place in a line; the methods without a body say what it waits for."""

    def __init__(
        self,
        repo: Repository,
        session: Session,
        listener: Listener,
        wait_ms: int,
        on_wait: Callable[[Any], None] | None,
        *,
        beat_ms: int = BEAT_MS,
        alive_ms: int = ALIVE_MS,
    ) -> None:
        self.repo = repo
        self.session = session
        self.ticket: int | None = None
        self._listener = listener
        self._wait_ms = wait_ms
        self._on_wait = on_wait
        self._beat_ms = beat_ms
        self._alive_ms = alive_ms
        self._now = 0
        self._away_since = 0.0

    @abstractmethod
    def judge(self, tx: Transaction) -> Any:
        """Take it if it can be had, and tell the outcome either way."""

    @abstractmethod
    def has_ended(self, outcome: Any) -> bool:
        """Whether there is nothing more to wait for."""

    @abstractmethod
    def timed_out(self, outcome: Any) -> Any:
        """The last outcome, told as the end of a wait that was too short."""

    @abstractmethod
    def wishes(self) -> tuple[str, str, list[tuple[str, str | None, str]]]:
        """Mode and task, then what stands in the line: (key, rest, text for people) each."""

    @abstractmethod
    def areas(self) -> dict[str, bool]:
        """What must not change while it is judged."""

    @abstractmethod
    def ends(self, outcome: Any) -> list[int]:
        """The instants at which something in the way ends by itself."""

    @abstractmethod
    def blockers(self, snapshot: Snapshot) -> set[str]:
        """The sessions that are in the way, by a cheap look."""

    def may_ask_twice(self) -> bool:
        """Whether what was granted without our hearing of it is found again by asking once more."""
        return True

    def stand(self) -> Any:
        """Wait until it is had, or for as long as was allowed."""
        try:
            outcome = self._attempt()
            deadline = self._now + self._wait_ms
            if not self.has_ended(outcome) and self._on_wait is not None:
                self._on_wait(outcome)
            while not self.has_ended(outcome):
                if self._now >= deadline:
                    return self.timed_out(outcome)
                outcome = self._outlasting(lambda last=outcome: self._go_on(deadline, last), outcome)
            return outcome
        finally:
            self._leave_line()

    def _go_on(self, deadline: int, outcome: Any) -> Any:
        self._sleep(deadline, outcome)
        return self._attempt() if self._looks_free() else self._stay(outcome)

    def _outlasting(self, step: Callable[[], Any], otherwise: Any) -> Any:
        """Do a step of a long wait; a database that is away for a moment, as when restarted, ends none."""
        try:
            outcome = step()
        except StoreTransient as error:
            away_since = self._away_since or time.monotonic()
            is_away = error.code == _AWAY or (error.code == _AMBIGUOUS and self.may_ask_twice())
            if not is_away or time.monotonic() - away_since > _AWAY_SECONDS:
                raise
            self._away_since = away_since
            time.sleep(_AGAIN_SECONDS)
            return otherwise
        self._away_since = 0.0
        return outcome

    def _attempt(self) -> Any:
        """Judge again, and take or (first time) stand in line, all in one transaction."""

        def work(tx: Transaction) -> tuple[Any, int | None, int]:
            self._forget_silent(tx)
            outcome = self.judge(tx)
            ticket = self.ticket
            if self.has_ended(outcome):
                if ticket is not None:
                    drop_waiter(tx, ticket, "answered")
                return outcome, None, tx.now
            if ticket is None or not tx.run(
                "waiter_beat", ticket=ticket, alive_until=tx.now + self._alive_ms
            ):
                ticket = self._stand_in_line(tx)
            return outcome, ticket, tx.now

        outcome, self.ticket, self._now = self.repo.change(work, areas=self.areas())
        return outcome

    def _stand_in_line(self, tx: Transaction) -> int:
        row = tx.one("waiter_next_ticket")
        assert row is not None
        # Never a ticket that was used before: who was forgotten must not find another in its place.
        ticket = max(int(row["ticket"]), tx.now)
        # Known before the commit: whoever is interrupted right after it can still give it back.
        self.ticket = ticket
        mode, task, wishes = self.wishes()
        alive_until = tx.now + self._alive_ms
        tx.run(
            "waiter_add",
            ticket=ticket,
            session=self.session.id,
            mode=mode,
            task=task,
            alive_until=alive_until,
        )
        for index, (key, rest, text) in enumerate(wishes):
            tx.run("waiter_path_add", key=key, ticket=ticket, branch=index, rest=rest, pattern=text)
        return ticket

    def _forget_silent(self, tx: Transaction) -> None:
        if tx.has_waiters:
            for row in tx.all("waiters_silent", before=tx.now - _FORGET_MS):
                drop_waiter(tx, row["ticket"])

    def _sleep(self, deadline: int, outcome: Any) -> None:
        """Until somebody frees something, a lease in the way ends, or it is time to say we are here."""
        # An end that has passed was put off by a renewal; the next beat looks again.
        ends = [end for end in self.ends(outcome) if end > self._now]
        wake_at = min([self._now + self._beat_ms, deadline, *(end + 1 for end in ends)])
        wait_until = max(wake_at - self._now, 1) / 1000
        heard = self._listener.wait(wait_until)
        while heard == "entry":  # somebody took something: that frees nothing for us
            wait_until = max(wake_at - self._look_at_clock(), 0) / 1000
            heard = self._listener.wait(wait_until) if wait_until else ""

    def _look_at_clock(self) -> int:
        return self.repo.store.view(lambda snapshot: snapshot.now)

    def _looks_free(self) -> bool:
        """A cheap look without a lock; only when it says yes is a transaction worth its price."""

        def look(snapshot: Snapshot) -> tuple[bool, int]:
            blockers = self.blockers(snapshot)
            is_free = all(is_dead(snapshot, blocker, self.repo.processes) for blocker in blockers)
            return is_free, snapshot.now

        is_free, self._now = self.repo.store.view(look)
        return is_free

    def _stay(self, outcome: Any) -> Any:
        """Say that we are still here, which counts as a sign of life for all that the session holds.

        A ring that closed meanwhile is found by the next full attempt.
        """

        def beat(tx: Transaction) -> bool:
            session = find_session(tx, self.session.id)
            if session is not None and is_touch_due(session, tx.now):
                tx.run("session_touch", session=self.session.id)
            return bool(tx.run("waiter_beat", ticket=self.ticket, alive_until=tx.now + self._alive_ms))

        if self.repo.store.change(beat, is_durable=False):
            return outcome
        return self._attempt()  # we were forgotten while we slept: judge anew

    def _leave_line(self) -> None:
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            self.repo.store.change(lambda tx: drop_waiter(tx, ticket, "left"))
