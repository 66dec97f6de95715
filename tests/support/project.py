"""A repository with a store, and agents that claim, renew, release and leave; shared by contract tests.

Each agent has its own connection to the store, as separate processes have.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pytest

from landlane.app.open import open_repository
from landlane.claims import check, held
from landlane.claims import take as claims
from landlane.claims import wait as waiting
from landlane.claims.claim_paths import claim_paths
from landlane.claims.model import Claim, ClaimMode, Refusal, Refused, Taken
from landlane.claims.take import list_claims
from landlane.ids import Credentials
from landlane.journal import read as journal
from landlane.sessions import join as sessions
from landlane.sessions.worker_sessions import join_worker_session
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import open_test_repository
from landlane.values import Row
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from landlane.clock import Clock
    from landlane.patterns.pattern import Pattern
    from landlane.platform.process import Process
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.store.interface import Store
    from landlane.store.journal_chain import JournalEntry

T = TypeVar("T")

# For behaviour of one kind of store only.
SQLITE_ONLY = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
POSTGRES_ONLY = pytest.mark.parametrize(
    "store", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)

SECOND = 1000
MINUTE = 60 * SECOND
WAIT_SECONDS = 30.0  # a longer wait means that something hangs

# The columns that hold instants of the store's own clock.
_INSTANTS = {
    "sessions": ("started_at", "seen_at", "lapses_at"),
    "claims": ("granted_at",),
    "waiters": ("since", "alive_until"),
    "slots": ("taken_at", "until", "freed_at"),
    "runners": ("until",),
}


class Project:
    """A repository and the location of its store, in which agents join and leave."""

    def __init__(self, repository: Path, place: str, clock: Clock | None = None) -> None:
        self.repository = repository
        self.place = place
        self._clock = clock
        self._contexts: list[Repository] = []

    @property
    def is_postgres(self) -> bool:
        return "://" in self.place

    @property
    def clock(self) -> FakeClock:
        """Return the fake clock; only for projects made with one."""
        assert isinstance(self._clock, FakeClock)
        return self._clock

    def repo(
        self,
        *,
        settings: Settings | None = None,
        ignore_case: bool = False,
        repository_id: str = "",
        secrets: Path | None = None,
    ) -> Repository:
        """Open the store again, as another process would."""
        repo = open_test_repository(
            self.repository,
            self.place,
            clock=self._clock,
            settings=settings,
            ignore_case=ignore_case,
            repository_id=repository_id,
            secrets=secrets,
        )
        self._contexts.append(repo)
        return repo

    def agent(
        self,
        name: str,
        *,
        settings: Settings | None = None,
        ignore_case: bool = False,
        role: str = "",
        process: Process | None = None,
        secrets: Path | None = None,
        is_internal: bool = False,
    ) -> Agent:
        """Join under a name; `is_internal` allows names of workers, such as `claude-T1`."""
        repo = self.repo(settings=settings, ignore_case=ignore_case, secrets=secrets)
        joined = sessions.join(repo, name, role=role, process=process, is_internal=is_internal)
        return Agent(repo, joined)

    def worker_session(self, supervisor: Agent, role: str = "explore") -> Agent:
        """Join as a read-only worker whose task the supervisor holds."""
        repo = self.repo()
        return Agent(repo, join_worker_session(repo, supervisor.session, role))

    def entries(self) -> list[JournalEntry]:
        return list(journal.read_entries(self._look()))

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.entries()]

    def tokens_of(self, kind: str) -> list[int]:
        return [entry.facts()["token"] for entry in self.entries() if entry.kind == kind]

    def claims(self) -> list[Claim]:
        return list_claims(self._look())

    def waiting_agents(self) -> list[str]:
        """Return the agents that wait for a claim, in order of arrival."""
        return [waiter.agent for waiter in self._look().store.view(waiting.list_waiters)]

    def listeners(self) -> int:
        """Return how many processes listen for wake-ups."""
        if not self.is_postgres:
            folder = self.repository / ".git" / "landlane" / "wake"
            return len(list(folder.rglob("*-*")))
        import psycopg

        repository = (self.repository / ".git" / "landlane" / "repository").read_text().strip()
        with psycopg.connect(self.place, options="-c search_path=landlane") as connection:
            query = "SELECT count(*) FROM listeners WHERE repository = %s"
            (count,) = connection.execute(query, (repository,)).fetchone() or (0,)
        return int(count)

    def now(self) -> int:
        """Return the time of the store's clock."""
        return self._look().store.view(lambda snapshot: snapshot.now)

    def rows(self, statement: str, **parameters: object) -> list[Row]:
        """Return the rows of a named statement."""
        return self._look().store.view(lambda snapshot: snapshot.all(statement, **parameters))

    def _look(self) -> Repository:
        return self._contexts[0] if self._contexts else self.repo()

    def close(self) -> None:
        for repo in self._contexts:
            repo.store.close()
        self._contexts.clear()


@contextmanager
def opened(project: Project) -> Iterator[Repository]:
    """Open the project's repository as a command does, with the files beside the store."""
    clock = project._clock
    if project.is_postgres and isinstance(clock, FakeClock):
        clock = clock.server
    repo = open_repository(str(project.repository), clock=clock)
    try:
        yield repo
    finally:
        repo.close()


class Agent:
    """A session, with methods that take patterns as text."""

    def __init__(self, repo: Repository, joined: sessions.Joined) -> None:
        self.repo = repo
        self.joined = joined

    @property
    def session(self) -> Session:
        return self.joined.session

    @property
    def name(self) -> str:
        return self.session.agent

    def pattern(self, text: str, *, is_literal: bool = False) -> Pattern:
        return self.repo.git.pattern_of(text, "literal" if is_literal else "glob")

    def claim(
        self,
        *patterns: str,
        ttl_ms: int | None = None,
        is_shared: bool = False,
        is_partial: bool = False,
        is_literal: bool = False,
        wait_ms: int = 0,
        task: str = "",
        note: str = "",
        on_wait: Callable[[Refused], None] | None = None,
    ) -> Taken | Refused:
        request = claims.make_request(
            self.repo,
            tuple(self.pattern(text, is_literal=is_literal) for text in patterns),
            mode=ClaimMode.SHARED if is_shared else ClaimMode.EXCLUSIVE,
            ttl_ms=ttl_ms,
            task=task,
            note=note,
            is_partial=is_partial,
        )
        return claim_paths(self.repo, self.session, request, wait_ms, on_wait)

    def take(
        self, *patterns: str, ttl_ms: int | None = None, is_shared: bool = False, task: str = ""
    ) -> Claim:
        """Claim, which must succeed; return the first grant."""
        return granted(self.claim(*patterns, ttl_ms=ttl_ms, is_shared=is_shared, task=task))[0]

    def expect_refusal(self, *patterns: str, is_shared: bool = False) -> Refusal:
        """Claim, which must be refused; return the first refusal."""
        return refused(self.claim(*patterns, is_shared=is_shared))[0]

    def renew(self, *patterns: str) -> tuple[Claim, ...]:
        wanted = tuple(self.pattern(text) for text in patterns) if patterns else None
        return held.renew(self.repo, self.session, wanted).granted

    def release(self, *patterns: str, commit: str = "", token: int | None = None) -> tuple[str, ...]:
        wanted = tuple(self.pattern(text) for text in patterns) if patterns else None
        return held.release(self.repo, self.session, wanted, commit=commit, token=token)

    def check(self, path: str, token: int | None = None) -> check.PathCheck:
        return check.check(self.repo, self.session, self.pattern(path, is_literal=True), token)

    def holds(self) -> list[str]:
        return [claim.pattern for claim in list_claims(self.repo) if claim.session == self.session.id]

    def authenticate(self) -> None:
        """Prove the session's identity, as every command does first."""
        proof = Credentials(session=self.session.id, secret=self.joined.secret)
        sessions.prove(self.repo, proof)

    def leave(self) -> tuple[str, ...]:
        return sessions.leave(self.repo, self.session)


def granted(outcome: Taken | Refused) -> tuple[Claim, ...]:
    assert isinstance(outcome, Taken), outcome
    return outcome.granted


def refused(outcome: Taken | Refused) -> tuple[Refusal, ...]:
    assert isinstance(outcome, Refused), outcome
    return outcome.refused


class Background(Generic[T]):
    """A function that runs in a thread of its own; `result` waits for it, with a time limit."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._done.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again by `result`
            self._error = error

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait until it has ended, at most so many seconds."""
        self._thread.join(seconds)

    def result(self, seconds: float = WAIT_SECONDS) -> T:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"not done after {seconds} s"
        if self._error is not None:
            raise self._error
        return self._done[0]


def let_time_pass(store: Store, milliseconds: int) -> None:
    """Move every instant of the repository into the past, as if this time had passed.

    Waiters do not notice until they look again. To leave a known rest of a lease, and not to race with it on
    a busy machine, take a long lease and let all but the rest of it pass.
    """
    opened_store = cast("Any", store)

    def work(_: object) -> None:
        database = opened_store.db if hasattr(opened_store, "db") else opened_store._reach()
        for table, columns in _INSTANTS.items():
            changes = ", ".join(f"{column} = {column} - {milliseconds}" for column in columns)
            database.execute(f"UPDATE {table} SET {changes} WHERE repository = '{opened_store.repository}'")

    opened_store.change(work)


def outlive_lease(store: Store, session: Session) -> None:
    """Let more time pass than the session's lease is long, and be sure that it is renewed meanwhile."""
    for _ in range(2):
        let_time_pass(store, session.lease_ms * 2 // 3)
        due_at = store.view(lambda snapshot: snapshot.now) - session.lease_ms // 3

        def has_shown_life(due_at: int = due_at) -> bool:
            row = store.view(lambda snapshot: snapshot.one("session_get", session=session.id))
            return row is not None and row["seen_at"] > due_at

        wait_until(has_shown_life)
