"""Wait for something to be released: queue, sleep until woken, show signs of life, give up.

Callers decide what is waited for (claims/wait.py for claims, state/slots.py for slots). All queues share one
table of tickets: the ticket says who came first, a session that ends leaves all queues, and a waiter that
showed no sign of life for a few seconds is skipped.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from landlane.errors import StoreTransient
from landlane.sessions.leases import WaitOutcome, drop_waiter, get_session, is_dead
from landlane.store.wake import WakeReason
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository
    from landlane.sessions.model import ClaimMode, Session
    from landlane.store.interface import Listener, Snapshot, Transaction

BEAT_MS = 1000
_BEAT_MS_PER_WAITER = 50  # the more are ahead, the less often a waiter writes: all together about as often
_LONGEST_BEAT_MS = 30_000
_BEATS = 3  # a waiter that misses this many is skipped
ALIVE_MS = _BEATS * BEAT_MS  # for the first in line
_FORGET_MS = 60_000
_OUTAGES, _AMBIGUOUS = ("STORE_UNREACHABLE", "STORE_BUSY"), "STORE_AMBIGUOUS"
_OUTAGE_SECONDS = 60.0  # how long the database may be unreachable or busy during a wait
_RETRY_SECONDS = 0.5


@value
class QueueEntry:
    """What a waiter's ticket says: each alternative it waits for, with the pattern that it belongs to."""

    mode: ClaimMode
    task: str
    wanted: tuple[tuple[Alternative, str], ...]


@value
class Blocker:
    """Something that a waiter waits for: the next ticket ahead of it, or a claim or slot that is held.

    The end of `key` is announced; if it is empty, the waiter has to look whenever something is freed.
    """

    session: str
    key: str = ""
    token: int = 0  # of a claim
    ends_at: int | None = None


class QueuedWait(ABC):
    """One session's wait in a queue; the abstract methods say for what."""

    def __init__(self, repo: Repository, session: Session, areas: Mapping[str, bool]) -> None:
        self.repo = repo
        self.session = session
        self.ticket: int | None = None
        self._areas = areas  # what must not change during an attempt
        self._blocker: Blocker | None = None
        self._ahead = 0  # how many waiters of the repository have waited longer
        self._alive_until = 0
        self._now = 0
        self._started_at = 0
        self._outage_since = 0.0

    @property
    def waited_ms(self) -> int:
        """How long the wait has taken so far; zero if the first attempt succeeded."""
        return self._now - self._started_at

    def begins(self, on_wait: Callable[[Any], None], outcome: Any) -> None:
        """Report what the first attempt found in the way."""
        on_wait(outcome)

    def waits_on(self, outcome: Any) -> None:  # noqa: B027 - few waits show their progress
        """Called after each look while the wait goes on, with the outcome of the last attempt."""

    @abstractmethod
    def attempt(self, tx: Transaction) -> Any:
        """Take it if it is available; return the outcome either way."""

    @abstractmethod
    def is_final(self, outcome: Any) -> bool:
        """Return whether there is nothing more to wait for."""

    @abstractmethod
    def last_attempt(self, tx: Transaction) -> Any:
        """Take it if it is available when the time is over; else return the outcome that says so."""

    @abstractmethod
    def queue_entry(self) -> QueueEntry:
        """Return what to write into the queue."""

    @abstractmethod
    def find_blocker(self, snapshot: Snapshot) -> Blocker | None:
        """Return one thing in the way, without locking anything; None if an attempt may succeed."""

    def is_blocked_by(self, snapshot: Snapshot, blocker: Blocker) -> bool:
        """Return whether something with a key is still in the way, by a quick look; if not, others may be."""
        del snapshot, blocker
        return False

    def is_dead(self, snapshot: Snapshot, session: str) -> bool:
        """Return whether all processes of a session have certainly ended."""
        return is_dead(snapshot, session, self.repo.processes)

    def is_repeatable(self) -> bool:
        """Return whether a grant whose answer was lost is found by asking again."""
        return True

    def run(self, wait_ms: int, on_wait: Callable[[Any], None] | None) -> Any:
        """Wait until it is available or the time is over, and return the outcome.

        `on_wait` is called once with the outcome of the first attempt, unless that is final.
        """
        listener = self.repo.store.listen()  # before the first attempt, so that no release is missed
        try:
            outcome = self._join(wait_ms)
            self._started_at = self._now
            deadline = self._now + wait_ms
            if not self.is_final(outcome) and on_wait is not None:
                self.begins(on_wait, outcome)
            while not self.is_final(outcome):
                if self._now >= deadline:
                    outcome = self.repo.change(self._give_up, areas=self._areas)
                    self.ticket = None
                    return outcome
                outcome = self._continue(listener, deadline, outcome)
                if not self.is_final(outcome):
                    self.waits_on(outcome)
            return outcome
        finally:
            try:
                self._leave_queue()
            finally:
                listener.close()

    def _continue(self, listener: Listener, deadline: int, outcome: Any) -> Any:
        """Sleep, then try again if that may help; a short outage of the database does not end the wait."""
        try:
            if not self._looks_free(listener):
                outcome = self._beat_if_due(outcome)
                if self.is_final(outcome):
                    return outcome
                was_freed = self._sleep(listener, deadline)
                if was_freed and self._blocker is not None and self._blocker.token:
                    return self._attempt()  # what was held is free, and no waiter is ahead: no need to look
            if self._looks_free(listener):
                outcome = self._attempt()
        except StoreTransient as error:
            self._pause_in_outage(error, _OUTAGE_SECONDS)
            return outcome
        self._outage_since = 0.0
        return outcome

    def _join(self, wait_ms: int) -> Any:
        """Make the first attempt, which joins the queue; a short outage or a busy store only delays it."""
        while True:
            try:
                outcome = self._attempt()
            except StoreTransient as error:
                self._pause_in_outage(error, min(wait_ms / 1000, _OUTAGE_SECONDS))
                continue
            self._outage_since = 0.0
            return outcome

    def _pause_in_outage(self, error: StoreTransient, limit_seconds: float) -> None:
        since = self._outage_since or time.monotonic()
        is_outage = error.code in _OUTAGES or (error.code == _AMBIGUOUS and self.is_repeatable())
        if not is_outage or time.monotonic() - since > limit_seconds:
            raise error
        self._outage_since = since
        time.sleep(_RETRY_SECONDS)

    def _give_up(self, tx: Transaction) -> Any:
        """Leave the queue at the end of the time, with what was free at the last moment."""
        outcome = self.last_attempt(tx)
        if self.ticket is not None:
            answered = self.is_final(outcome)
            drop_waiter(tx, self.ticket, WaitOutcome.ANSWERED if answered else WaitOutcome.LEFT)
        return outcome

    def _attempt(self) -> Any:
        """Take it, or (the first time) join the queue, in one transaction."""

        def work(tx: Transaction) -> tuple[Any, int | None, int]:
            self._drop_silent_waiters(tx)
            outcome = self.attempt(tx)
            ticket = self.ticket
            if self.is_final(outcome):
                if ticket is not None:
                    drop_waiter(tx, ticket, WaitOutcome.ANSWERED)
                return outcome, None, tx.now
            if ticket is None or not self._write_beat(tx):
                ticket = self._join_queue(tx)
            return outcome, ticket, tx.now

        outcome, self.ticket, self._now = self.repo.change(work, areas=self._areas)
        self._blocker = None
        return outcome

    def _join_queue(self, tx: Transaction) -> int:
        row = tx.one("waiter_next_ticket")
        assert row is not None
        # Tickets are never reused: a waiter that was dropped must not find another one under its ticket.
        ticket = max(int(row["ticket"]), tx.now)
        # Known before the commit, so that a signal right after it cannot leave the ticket behind.
        self.ticket = ticket
        entry = self.queue_entry()
        facts = {"session": self.session.id, "mode": entry.mode, "task": entry.task}
        self._ahead = self._count_ahead(tx)
        self._alive_until = tx.now + self._alive_ms
        tx.run("waiter_add", ticket=ticket, alive_until=self._alive_until, **facts)
        for index, (alternative, pattern) in enumerate(entry.wanted):
            columns = {"key": alternative.key, "rest": alternative.rest, "pattern": pattern}
            tx.run("waiter_path_add", ticket=ticket, branch=index, **columns)
        return ticket

    def _count_ahead(self, snapshot: Snapshot) -> int:
        row = snapshot.one("waiters_ahead", ticket=self.ticket or 0)
        return row["waiters"] if row is not None else 0

    def _drop_silent_waiters(self, tx: Transaction) -> None:
        if tx.has_waiters:
            for row in tx.all("waiters_silent", before=tx.now - _FORGET_MS):
                drop_waiter(tx, row["ticket"])

    @property
    def _beat_ms(self) -> int:
        return min(max(BEAT_MS, self._ahead * _BEAT_MS_PER_WAITER), _LONGEST_BEAT_MS)

    @property
    def _alive_ms(self) -> int:
        return _BEATS * self._beat_ms

    def _sleep(self, listener: Listener, deadline: int) -> bool:
        """Sleep until something is released, a lease in the way ends, or the next sign of life is due.

        Return whether something was released.
        """
        wake_at = min(self._now + self._beat_ms, deadline)
        end = self._blocker.ends_at if self._blocker is not None else None
        # An end that has passed was moved by a renewal; the next beat looks again.
        if end is not None and end > self._now:
            wake_at = min(wake_at, end + 1)
        reason = listener.wait(max(wake_at - self._now, 1) / 1000)
        while reason == WakeReason.ENTRY:  # nothing was released
            now = self.repo.store.view(lambda snapshot: snapshot.now)
            reason = listener.wait((wake_at - now) / 1000) if wake_at > now else WakeReason.TIMEOUT
        return reason == WakeReason.FREED

    def _looks_free(self, listener: Listener) -> bool:
        """Return whether an attempt may succeed; this needs no lock, unlike the attempt.

        Otherwise the listener watches one thing that is in the way.
        """

        def look(snapshot: Snapshot) -> tuple[Blocker | None, int]:
            known = self._blocker
            is_current = known is not None and (known.ends_at is None or known.ends_at > snapshot.now)
            if known is not None and is_current and known.key and self.is_blocked_by(snapshot, known):
                return known, snapshot.now
            self._ahead = self._count_ahead(snapshot)
            return self.find_blocker(snapshot), snapshot.now

        while True:
            blocker, self._now = self.repo.store.view(look)
            is_watched = blocker is not None and blocker == self._blocker
            self._blocker = blocker
            if blocker is None or is_watched:
                return blocker is None
            listener.watch(blocker.key)  # and look again: it may have ended before it was watched

    def _beat_if_due(self, outcome: Any) -> Any:
        """Show a sign of life, also for what the session holds, and return the outcome of the last attempt.

        A cycle that was closed meanwhile is found by the next attempt.
        """
        if self._alive_until >= self._now + self._alive_ms - self._beat_ms // 2:
            return outcome

        def work(tx: Transaction) -> bool:
            if get_session(tx, self.session.id).is_touch_due(tx.now):
                tx.run("session_touch", session=self.session.id)
            return self._write_beat(tx)

        if self.repo.store.change(work, is_durable=False):
            return outcome
        return self._attempt()  # our ticket was dropped while we slept

    def _write_beat(self, tx: Transaction) -> bool:
        """Write that this waiter is alive; return False if its ticket was dropped."""
        self._alive_until = tx.now + self._alive_ms
        return bool(tx.run("waiter_beat", ticket=self.ticket, alive_until=self._alive_until))

    def _leave_queue(self) -> None:
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            self.repo.store.change(lambda tx: drop_waiter(tx, ticket, WaitOutcome.LEFT))
