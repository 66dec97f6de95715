"""`Landlane`: one agent's view of a repository."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from landlane.api.fanout import Fans
from landlane.api.gates import Gate, Gates
from landlane.api.handoffs import Handoff, Handoffs
from landlane.api.landings import Landings
from landlane.api.retries import Decision, Lineage, Retries
from landlane.api.reviews import Branch, Fan, Review, Reviews
from landlane.api.state import Numbers, SharedState, Slots
from landlane.api.steps import Step, Steps
from landlane.api.tasks import Tasks
from landlane.api.usage import Usage, measure
from landlane.api.workspaces import Workspaces
from landlane.app.open import open_repository, person_name
from landlane.app.verify_journal import verify_journal
from landlane.claims import check, held
from landlane.claims import read as read_claims
from landlane.claims import take as claims_operations
from landlane.claims import wait as waiting
from landlane.claims.check import PathCheck
from landlane.claims.model import Claim, ClaimMode, Refusal, Refused, Request, Taken
from landlane.clock import parse_duration, rfc3339
from landlane.errors import Held, LandlaneError, Stale
from landlane.journal import read as journal
from landlane.repository import Repository
from landlane.sessions import identify
from landlane.sessions import join as sessions
from landlane.sessions.model import Session
from landlane.state.key_rules import State, StateStale
from landlane.state.numbers import Number
from landlane.state.slot_kinds import Slot, SlotRefused, SlotTaken
from landlane.store.journal_chain import Entry, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import TracebackType
    from typing import Self

    from landlane.api.reviews import Parts
    from landlane.clock import Clock
    from landlane.fanout.split import FannedOut
    from landlane.patterns.pattern import Pattern
    from landlane.stats.metrics import Stats


T = TypeVar("T")

__all__ = [
    "Branch",
    "Claim",
    "ClaimRefused",
    "Decision",
    "Entry",
    "Fan",
    "Gate",
    "Handoff",
    "Landlane",
    "LandlaneError",
    "Lineage",
    "Number",
    "Refusal",
    "Refused",
    "Review",
    "Session",
    "Slot",
    "SlotRefused",
    "SlotTaken",
    "PathCheck",
    "State",
    "StateStale",
    "Step",
    "Taken",
    "Verdict",
]


class ClaimRefused(Held):
    """Raised by `claiming` when claims are held by others; `refused` lists the holders."""

    def __init__(self, outcome: Refused, until: str) -> None:
        first = outcome.refused[0]
        super().__init__(
            f"{first.pattern} is held by {first.holder} until {until}",
            code=outcome.code,
            hint=first.hint,
            holder=first.holder,
            until=until,
        )
        self.refused = outcome.refused
        self.cycle = outcome.cycle


class Landlane:
    """One agent's view of a repository. Every call renews the session and its leases.

    Without `agent`, the caller is found as on the command line: a registered parent process,
    `LANDLANE_SESSION`, `LANDLANE_AGENT`, else the person.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] = ".",
        *,
        agent: str = "",
        role: str = "",
        session: str = "",
        clock: Clock | None = None,
    ) -> None:
        self._repo: Repository = open_repository(os.path.abspath(folder), clock=clock)
        try:
            self._joined = self._identify(agent, role, session)
        except BaseException:
            self._repo.close()
            raise
        self._repo.settle()

    def _identify(self, agent: str, role: str, session: str) -> sessions.Joined:
        caller = identify.Caller(
            name=agent,
            session_text=session or os.environ.get("LANDLANE_SESSION", ""),
            agent_variable=os.environ.get("LANDLANE_AGENT", ""),
            person=person_name(),
        )
        return identify.identify(self._repo, caller, role=role)

    @property
    def session(self) -> Session:
        """The session this object acts for."""
        return self._joined.session

    @property
    def folder(self) -> str:
        """The state folder of this repository."""
        return self._repo.state_folder

    @property
    def tasks(self) -> Tasks:
        """The work queue."""
        return Tasks(self._repo, lambda: self.session)

    @property
    def gates(self) -> Gates:
        """Questions that only a person may answer."""
        return Gates(self._repo, lambda: self.session)

    @property
    def handoffs(self) -> Handoffs:
        """Handoffs of tasks between sessions."""
        return Handoffs(self._repo, lambda: self.session)

    @property
    def state(self) -> SharedState:
        """Values under keys, each with a version."""
        return SharedState(self._repo, lambda: self.session)

    @property
    def slots(self) -> Slots:
        """Ports, names and amounts that one session holds at a time."""
        return Slots(self._repo, lambda: self.session)

    @property
    def numbers(self) -> Numbers:
        """Unique numbers."""
        return Numbers(self._repo, lambda: self.session)

    @property
    def fans(self) -> Fans:
        """Split tasks and the results of their branches."""
        return Fans(self._repo, lambda: self.session)

    def fan_out(
        self,
        task: str,
        parts: Parts,
        *,
        policy: str | int = "all",
        deadline: str | float = 0,
        rest: str = "drop",
    ) -> FannedOut:
        """Split a task into branches; see `Fans.out`."""
        return self.fans.out(task, parts, policy=policy, deadline=deadline, rest=rest)

    @property
    def retries(self) -> Retries:
        """How attempts end, and what a task may still use."""
        return Retries(self._repo, lambda: self.session)

    @property
    def reviews(self) -> Reviews:
        """Reviews of commits before they land."""
        return Reviews(self._repo, lambda: self.session)

    @property
    def steps(self) -> Steps:
        """Steps already done, by key, for callers that may be killed."""
        return Steps(self._repo, lambda: self.session)

    @property
    def workspaces(self) -> Workspaces:
        """Checkouts made for tasks, and the work that was saved from them."""
        return Workspaces(self._repo, lambda: self.session)

    @property
    def landings(self) -> Landings:
        """The landing queue."""
        return Landings(self._repo, lambda: self.session)

    @property
    def usage(self) -> Usage:
        """Recorded cost."""
        return Usage(self._repo, lambda: self.session)

    def stats(self, since: str = "7d", until: str = "") -> Stats:
        """Return the metrics of a period, such as the last `7d`, since a date, or `all`.

        Raises:
            Malformed: the period cannot be parsed.
        """
        return measure(self._repo, since, until)

    @property
    def credentials(self) -> str:
        """The value of `LANDLANE_SESSION` that lets a child process act for the same session."""
        return f"{self._joined.session.id}:{self._joined.secret}"

    def when(self, at: int) -> datetime:
        """Return the calendar time of a store instant such as `Claim.until`."""
        return datetime.fromtimestamp(self._repo.store.wall_of(at) / 1000, tz=UTC)

    def claim(
        self,
        *patterns: str,
        ttl: str | None = None,
        wait: str | float = 0,
        partial: bool = False,
        shared: bool = False,
        literal: bool = False,
        task: str = "",
        note: str = "",
    ) -> Taken | Refused:
        """Take claims, or return who holds them. All or nothing, unless `partial`.

        Raises:
            Malformed: a pattern, the lease or the wait cannot be parsed.
            Stale: the session has ended.
        """
        request = claims_operations.make_request(
            self._repo,
            self._patterns(patterns, literal=literal),
            mode=ClaimMode.SHARED if shared else ClaimMode.EXCLUSIVE,
            ttl_ms=parse_duration(ttl, what="ttl") if ttl is not None else None,
            task=task,
            note=note,
            is_partial=partial,
        )
        wait_ms = parse_duration(wait, what="wait") if isinstance(wait, str) else int(wait * 1000)
        return self._settled(lambda: self._take(request, wait_ms))

    def _take(self, request: Request, wait_ms: int) -> Taken | Refused:
        return waiting.take_or_wait(self._repo, self.session, request, wait_ms)

    @contextmanager
    def claiming(
        self,
        *patterns: str,
        ttl: str | None = None,
        wait: str | float = 0,
        shared: bool = False,
        literal: bool = False,
        task: str = "",
        note: str = "",
    ) -> Generator[Taken]:
        """Hold claims for the length of a `with` block.

        Raises:
            ClaimRefused: another session holds one of them.
            Stale: the lease expired before the end of the block; the work was not protected.
        """
        outcome = self.claim(
            *patterns, ttl=ttl, wait=wait, shared=shared, literal=literal, task=task, note=note
        )
        if isinstance(outcome, Refused):
            raise ClaimRefused(outcome, rfc3339(self._repo.store.wall_of(outcome.refused[0].until)))
        try:
            yield outcome
        except BaseException:
            self._release_quietly(outcome)
            raise
        self._release_taken(outcome)

    def _release_taken(self, taken: Taken) -> None:
        repo = self._repo
        for claim in taken.granted:
            pattern = repo.git.pattern_of(claim.pattern, claim.kind)
            held.release(repo, self.session, (pattern,), token=claim.token)
        self._repo.settle()

    def _release_quietly(self, taken: Taken) -> None:
        """Release after a failure and suppress errors, so that the caller sees the failure itself."""
        try:
            self._release_taken(taken)
        except LandlaneError:
            return

    def renew(self, *patterns: str, literal: bool = False) -> tuple[Claim, ...]:
        """Renew these claims, or all. An expired one is checked again and gets a new token.

        Raises:
            Stale: a lease expired and another session holds it now, or the session has ended.
        """
        wanted = self._patterns(patterns, literal=literal) if patterns else None
        return self._settled(lambda: held.renew(self._repo, self.session, wanted)).granted

    def release(self, *patterns: str, commit: str = "", literal: bool = False) -> tuple[str, ...]:
        """Release these claims, or all; with the commit that completed the work.

        Raises:
            Stale: a lease has expired, or the session has ended.
            LandlaneError: one of them is not held.
        """
        wanted = self._patterns(patterns, literal=literal) if patterns else None
        commit_id = self._repo.git.commit_id(commit) if commit else ""
        return self._settled(lambda: held.release(self._repo, self.session, wanted, commit=commit_id))

    def check(self, path: str, token: int | None = None) -> check.PathCheck:
        """Return whether this session may change a path now; with a token, whether that grant is still valid.

        Raises:
            Stale: the token's grant has expired.
        """
        pattern = self._repo.git.pattern(path, is_literal=True)
        identify.prove(self._repo, self._proof())
        return check.check(self._repo, self.session, pattern, token)

    def claims(self, *paths: str) -> list[Claim]:
        """Return all live claims, or those that overlap these paths."""
        self._show_life()
        return read_claims.list_claims(self._repo, self._patterns(paths))

    def sessions(self) -> list[Session]:
        """Return all live sessions."""
        self._show_life()
        return sessions.live_sessions(self._repo)

    def journal(self, since: int = 0) -> Iterator[Entry]:
        """Return the entries after a position."""
        self._show_life()
        return journal.read_entries(self._repo, since)

    def follow(
        self, since: int | None = None, is_done: Callable[[], bool] = lambda: False
    ) -> Iterator[Entry]:
        """Yield entries as they arrive, from now on or after a position."""
        after = journal.last_position(self._repo) if since is None else since
        return journal.follow(self._repo, after, is_done)

    def verify(self) -> Verdict:
        """Verify that the journal was not changed."""
        return verify_journal(self._repo)

    def leave(self) -> tuple[str, ...]:
        """End the session and return what was released.

        Raises:
            Stale: it has already ended.
        """
        return self._settled(lambda: sessions.leave(self._repo, self.session))

    def close(self) -> None:
        """Close the store; the session lives on until it leaves or expires."""
        self._repo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _show_life(self) -> None:
        """Renew the session; reading also works when it has ended."""
        try:
            identify.prove(self._repo, self._proof())
        except Stale:
            return

    def _proof(self) -> sessions.Credentials:
        return sessions.Credentials(session=self.session.id, secret=self._joined.secret)

    def _patterns(self, texts: tuple[str, ...], *, literal: bool = False) -> tuple[Pattern, ...]:
        return tuple(self._repo.git.pattern(text, is_literal=literal) for text in texts)

    def _settled(self, work: Callable[[], T]) -> T:
        result = work()
        self._repo.settle()
        return result
