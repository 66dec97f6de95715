"""`Landlane`: one agent's view of a repository."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from landlane.api.fanout import Fans
from landlane.api.gates import Gates
from landlane.api.handoffs import Handoffs
from landlane.api.landings import Landings
from landlane.api.retries import Retries
from landlane.api.reviews import Reviews
from landlane.api.session_view import Duration, SessionView, Since, milliseconds, period_text
from landlane.api.state import Numbers, SharedState, Slots, Steps
from landlane.api.tasks import Tasks
from landlane.api.usage import Usage
from landlane.api.workspaces import Workspaces
from landlane.app.open import open_repository, person_name
from landlane.app.verify_journal import verify_journal
from landlane.claims import check, held
from landlane.claims.claim_paths import claim_paths
from landlane.claims.model import ClaimMode
from landlane.claims.take import list_claims, make_request
from landlane.errors import LandlaneError, Stale
from landlane.journal import read as journal
from landlane.sessions import join as sessions
from landlane.sessions.own_settings import with_settings_of
from landlane.stats.calculate import period_of, stats

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from landlane.api.claim_values import Claim, Entry, JournalCheck, PathCheck, Refused, Session, Taken
    from landlane.api.fanout import Parts
    from landlane.api.shared_values import Stats
    from landlane.api.task_values import SplitTask
    from landlane.clock import Clock
    from landlane.patterns.pattern import Pattern


class Landlane(SessionView):
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
        repo = open_repository(os.path.abspath(folder), clock=clock, is_person=not agent)
        try:
            caller = sessions.Caller(
                name=agent,
                session_text=session or os.environ.get("LANDLANE_SESSION", ""),
                agent_variable=os.environ.get("LANDLANE_AGENT", ""),
                person=person_name(),
            )
            repo = with_settings_of(repo, caller)
            joined = sessions.identify(repo, caller, role=role)
        except BaseException:
            repo.close()
            raise
        super().__init__(repo, joined.session)
        self._proof = sessions.Credentials(session=joined.session.id, secret=joined.secret)
        repo.settle()

    @property
    def session(self) -> Session:
        """The session this object acts for."""
        return self._public(self._session)

    @property
    def folder(self) -> str:
        """The state folder of this repository."""
        return self._repo.state_folder

    @property
    def tasks(self) -> Tasks:
        """The work queue."""
        return Tasks(self._repo, self._session)

    @property
    def gates(self) -> Gates:
        """Questions that only a person may answer."""
        return Gates(self._repo, self._session)

    @property
    def handoffs(self) -> Handoffs:
        """Handoffs of tasks between sessions."""
        return Handoffs(self._repo, self._session)

    @property
    def state(self) -> SharedState:
        """Values under keys, each with a version."""
        return SharedState(self._repo, self._session)

    @property
    def slots(self) -> Slots:
        """Ports, names and amounts that one session holds at a time."""
        return Slots(self._repo, self._session)

    @property
    def numbers(self) -> Numbers:
        """Unique numbers."""
        return Numbers(self._repo, self._session)

    @property
    def fans(self) -> Fans:
        """Split tasks and the results of their branches."""
        return Fans(self._repo, self._session)

    def fan_out(
        self,
        task: str,
        parts: Parts,
        *,
        policy: str | int = "all",
        deadline: Duration = 0,
        rest: str = "drop",
    ) -> SplitTask:
        """Split a task into branches; see `Fans.out`."""
        return self.fans.out(task, parts, policy=policy, deadline=deadline, rest=rest)

    @property
    def retries(self) -> Retries:
        """How attempts end, and what a task may still use."""
        return Retries(self._repo, self._session)

    @property
    def reviews(self) -> Reviews:
        """Reviews of commits before they land."""
        return Reviews(self._repo, self._session)

    @property
    def steps(self) -> Steps:
        """Steps already done, by key, for callers that may be killed."""
        return Steps(self._repo, self._session)

    @property
    def workspaces(self) -> Workspaces:
        """Checkouts made for tasks, and the work that was saved from them."""
        return Workspaces(self._repo, self._session)

    @property
    def landings(self) -> Landings:
        """The landing queue."""
        return Landings(self._repo, self._session)

    @property
    def usage(self) -> Usage:
        """Recorded cost."""
        return Usage(self._repo, self._session)

    def stats(self, since: Since = "7d", until: str | datetime = "") -> Stats:
        """Return the metrics of a period, such as the last `7d`, since a date, or `all`.

        Raises:
            Malformed: the period cannot be parsed.
        """
        period = period_of(self._repo, period_text(since), period_text(until))
        return self._public(stats(self._repo, period))

    @property
    def credentials(self) -> str:
        """The value of `LANDLANE_SESSION` that lets a child process act for the same session."""
        return f"{self._proof.session}:{self._proof.secret}"

    def claim(
        self,
        *patterns: str,
        ttl: Duration | None = None,
        wait: Duration = 0,
        partial: bool = False,
        shared: bool = False,
        literal: bool = False,
        task: str = "",
        note: str = "",
    ) -> Taken | Refused:
        """Take claims, or return who holds them. All or nothing, unless `partial`.

        A refusal is false, and its `unwrap()` raises `ClaimRefused`.
        Changes that a former holder left on these paths when its lease expired are saved first:
        `Taken.saved`.

        Raises:
            Malformed: a pattern, the lease or the wait cannot be parsed.
            Stale: the session has ended.
        """
        request = make_request(
            self._repo,
            self._patterns(patterns, literal=literal),
            mode=ClaimMode.SHARED if shared else ClaimMode.EXCLUSIVE,
            ttl_ms=milliseconds(ttl, "ttl") if ttl is not None else None,
            task=task,
            note=note,
            is_partial=partial,
        )
        wait_ms = milliseconds(wait, "wait")
        return self._settled(claim_paths(self._repo, self._session, request, wait_ms))

    @contextmanager
    def claiming(
        self,
        *patterns: str,
        ttl: Duration | None = None,
        wait: Duration = 0,
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
        taken = self.claim(
            *patterns, ttl=ttl, wait=wait, shared=shared, literal=literal, task=task, note=note
        ).unwrap()
        try:
            yield taken
        except BaseException:
            with suppress(LandlaneError):  # the caller sees the first failure
                self._release_taken(taken)
            raise
        self._release_taken(taken)

    def _release_taken(self, taken: Taken) -> None:
        for claim in taken.granted:
            pattern = self._repo.git.pattern_of(claim.pattern, claim.kind)
            held.release(self._repo, self._session, (pattern,), token=claim.token)
        self._repo.settle()

    def renew(self, *patterns: str, literal: bool = False) -> tuple[Claim, ...]:
        """Renew these claims, or all. An expired one is checked again and gets a new token.

        Raises:
            Stale: a lease expired and another session holds it now, or the session has ended.
        """
        wanted = self._patterns(patterns, literal=literal) if patterns else None
        return self._settled(held.renew(self._repo, self._session, wanted)).granted

    def release(self, *patterns: str, commit: str = "", literal: bool = False) -> tuple[str, ...]:
        """Release these claims, or all; with the commit that completed the work.

        Raises:
            Stale: a lease has expired, or the session has ended.
            LandlaneError: one of them is not held.
        """
        wanted = self._patterns(patterns, literal=literal) if patterns else None
        commit_id = self._repo.git.commit_id(commit) if commit else ""
        return self._settled(held.release(self._repo, self._session, wanted, commit=commit_id))

    def check(self, path: str, token: int | None = None) -> PathCheck:
        """Return whether this session may change a path now; with a token, whether its grant is valid.

        Raises:
            Stale: the token's grant has expired.
        """
        pattern = self._repo.git.pattern(path, is_literal=True)
        sessions.prove(self._repo, self._proof)
        return self._public(check.check(self._repo, self._session, pattern, token))

    def claims(self, *paths: str) -> list[Claim]:
        """Return all live claims, or those that overlap these paths."""
        self._renew_session()
        return self._public(list_claims(self._repo, self._patterns(paths)))

    def sessions(self) -> list[Session]:
        """Return all live sessions."""
        self._renew_session()
        return self._public(sessions.live_sessions(self._repo))

    def journal(self, since: int = 0) -> Iterator[Entry]:
        """Return the entries after a position."""
        self._renew_session()
        return map(self._public, journal.read_entries(self._repo, since))

    def follow(
        self, since: int | None = None, is_done: Callable[[], bool] = lambda: False
    ) -> Iterator[Entry]:
        """Yield entries as they arrive, from now on or after a position."""
        after = journal.last_position(self._repo) if since is None else since
        return map(self._public, journal.follow(self._repo, after, is_done))

    def verify(self) -> JournalCheck:
        """Verify that the journal was not changed."""
        return self._public(verify_journal(self._repo))

    def leave(self) -> tuple[str, ...]:
        """End the session and return what was released.

        Raises:
            Stale: it has already ended.
        """
        freed = sessions.leave(self._repo, self._session)
        self._repo.settle()  # without a sign of life: the session is over
        return freed

    def close(self) -> None:
        """Close the store; the session lives on until it leaves or expires."""
        self._repo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _renew_session(self) -> None:
        """Renew the session; reading also works when it has ended."""
        with suppress(Stale):
            sessions.prove(self._repo, self._proof)

    def _patterns(self, texts: tuple[str, ...], *, literal: bool = False) -> tuple[Pattern, ...]:
        return tuple(self._repo.git.pattern(text, is_literal=literal) for text in texts)
