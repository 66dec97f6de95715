"""Claims against a model: sessions come, claim, renew, release, lapse and leave, and time does what it likes.

The model is a list of grants and brute force: who overlaps whom is asked for each pair. What it takes from
the store is only when a session was last seen, because signs of life are written down only now and then; how
old that may be is checked.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from landlane.claims import check, held
from landlane.claims import take as claims
from landlane.claims.model import ClaimMode, Refused, Taken
from landlane.errors import Held, LandlaneError, Stale
from landlane.ids import new_uuid
from landlane.journal import read as journal
from landlane.journal import verify
from landlane.patterns.pattern import Pattern, overlap, parse
from landlane.sessions import join as sessions
from landlane.sessions.model import Claim
from landlane.settings.model import SessionSettings, Settings
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import make_repository, open_test_repository
from landlane.values import Row, replace, value
from tests.support.patterns import covers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from landlane.ids import Credentials
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot

pytestmark = [pytest.mark.simulation, pytest.mark.slow]

MORE = int(os.environ.get("LANDLANE_SIMULATIONS", "1"))
# Thousands of small files that nobody needs after a power cut: where there is a disk in memory, there.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

SECOND = 1000
SESSION_LEASE = 60 * SECOND

NAMES = st.sampled_from(["ann", "bob", "cid"])
PATTERNS = st.sampled_from(["a", "a/b/c.py", "a/*.py", "a/**/*.py", "{a,d}/*", "d/x.py", "**/x.py", "lock:a"])
PATHS = st.sampled_from(["a/b/c.py", "a/x.py", "d/x.py", "e"])
MODES = st.sampled_from([ClaimMode.EXCLUSIVE, ClaimMode.EXCLUSIVE, ClaimMode.SHARED])
TTLS = st.sampled_from([SECOND, 10 * SECOND, 50 * SECOND, 200 * SECOND])


@value
class ModelClaim:
    """What the model knows of a claim."""

    token: int
    pattern: Pattern
    mode: ClaimMode
    name: str
    session: str
    granted_at: int
    ttl_ms: int


class MemorySecrets:
    """Secrets that are kept in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, Credentials] = {}

    def load(self, agent: str) -> Credentials | None:
        return self._kept.get(agent)

    def save(self, credentials: Credentials) -> None:
        self._kept[credentials.agent] = credentials

    def drop(self, agent: str, session: str) -> None:
        if agent in self._kept and self._kept[agent].session == session:
            del self._kept[agent]


class ClaimsMachine(RuleBasedStateMachine):
    """One store, three agents, one clock."""

    place = ""  # a PostgreSQL URL; otherwise each run makes a file of its own
    repository: Path

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="landlane-machine-", dir=MEMORY))
        self.clock = FakeClock()
        self.repository_id = new_uuid()
        self.secrets = MemorySecrets()
        self.repo = self.open()
        self.sessions: dict[str, Session] = {}
        self.grants: list[ModelClaim] = []
        self.over: dict[int, ModelClaim] = {}
        self.lost: dict[tuple[str, str], tuple[ModelClaim, int]] = {}
        self.tokens = [0]
        for name in ("ann", "bob", "cid"):
            self.join(name)

    def open(self) -> Repository:
        repo = open_test_repository(
            self.repository,
            self.place or str(self.folder / "store.db"),
            clock=self.clock,
            repository_id=self.repository_id,
            settings=Settings(sessions=SessionSettings(lease_ms=SESSION_LEASE)),
        )
        return replace(repo, secrets=self.secrets)

    def teardown(self) -> None:
        if not hasattr(self, "repo"):
            return
        try:
            self.check_journal()
        finally:
            self.repo.store.close()
            shutil.rmtree(self.folder)

    # ------------------------------------------------------------------------------------- the model

    def look(self, statement: str, **parameters: object) -> list[Row]:
        """Read without sweeping away what has lapsed."""
        return self.repo.store.view(lambda snapshot: snapshot.all(statement, **parameters))

    @property
    def now(self) -> int:
        return self.repo.store.view(lambda snapshot: snapshot.now)

    def seen(self) -> dict[str, int]:
        """When each session that has not ended was last seen."""
        return {row["id"]: row["seen_at"] for row in self.look("sessions_live")}

    def live(self) -> list[ModelClaim]:
        now, seen = self.now, self.seen()
        return [
            grant
            for grant in self.grants
            if grant.session in seen and max(grant.granted_at, seen[grant.session]) + grant.ttl_ms > now
        ]

    def is_alive(self, name: str) -> bool:
        """Whether the session that this agent believes to have is there."""
        session = self.sessions[name].id
        seen_at = self.seen().get(session)
        if seen_at is None:
            return False
        return seen_at + SESSION_LEASE > self.now or any(grant.session == session for grant in self.live())

    def mine(self, name: str, pattern: Pattern, mode: ClaimMode | None = None) -> list[ModelClaim]:
        session = self.sessions[name].id
        return [
            grant
            for grant in self.live()
            if grant.session == session
            and set(grant.pattern.alternatives) == set(pattern.alternatives)
            and mode in (None, grant.mode)
        ]

    def others_on(self, name: str, pattern: Pattern) -> list[ModelClaim]:
        session = self.sessions[name].id
        return [
            grant for grant in self.live() if grant.session != session and overlap(grant.pattern, pattern)
        ]

    def is_free_for(self, name: str, pattern: Pattern, mode: ClaimMode) -> bool:
        if self.mine(name, pattern, mode):
            return True
        return not any(ClaimMode.EXCLUSIVE in (mode, grant.mode) for grant in self.others_on(name, pattern))

    def settle(self) -> None:
        """Give up what is over: the store has swept it away, or will at the next change."""
        live = self.live()
        for grant in self.grants:
            if grant not in live:
                self.lose(grant)
        self.grants = live

    def lose(self, grant: ModelClaim) -> None:
        """Remember a grant that is over, and since when."""
        (session,) = self.look("session_get", session=grant.session)
        self.over[grant.token] = grant
        ended_at = max(grant.granted_at, session["seen_at"]) + grant.ttl_ms
        self.lost[grant.name, grant.pattern.text] = (grant, ended_at)

    def has_lost_all(self, name: str) -> bool:
        """Whether a session that holds nothing now held something before."""
        started_at = self.sessions[name].started_at
        return any(who == name and ended >= started_at for (who, _), (_, ended) in self.lost.items())

    def grant(self, name: str, pattern: Pattern, mode: ClaimMode, ttl_ms: int, token: int) -> None:
        """The store granted this: again, or anew under a higher token than any before."""
        session = self.sessions[name].id
        again = self.mine(name, pattern, mode)
        if again:
            assert token == again[0].token
            self.grants.remove(again[0])
            self.grants.append(replace(again[0], granted_at=self.now, ttl_ms=ttl_ms))
            return
        assert token > self.tokens[-1]
        self.tokens.append(token)
        self.grants.append(
            ModelClaim(
                token=token,
                pattern=pattern,
                mode=mode,
                name=name,
                session=session,
                granted_at=self.now,
                ttl_ms=ttl_ms,
            )
        )

    def refuses(self, kind: type[LandlaneError], code: str, act: Callable[[], object]) -> None:
        with pytest.raises(LandlaneError) as caught:
            act()
        assert (type(caught.value), caught.value.code) == (kind, code)

    def refuses_not_held(self, name: str, pattern: Pattern, act: Callable[[], object]) -> None:
        self.settle()
        if (name, pattern.text) in self.lost:
            self.refuses(Stale, "LEASE_OVER", act)
        elif self.others_on(name, pattern):
            self.refuses(Held, "CLAIM_HELD", act)
        else:
            self.refuses(LandlaneError, "NOT_HELD", act)

    def was_seen(self, name: str) -> None:
        """A session that has just acted was last seen not longer ago than a third of its lease."""
        assert self.now - self.seen()[self.sessions[name].id] <= SESSION_LEASE // 3

    # --------------------------------------------------------------------------------------- sessions

    @rule(name=NAMES)
    def joins(self, name: str) -> None:
        self.join(name)

    def join(self, name: str) -> None:
        before = self.sessions.get(name)
        is_new = before is None or not self.is_alive(name)
        self.settle()

        joined = sessions.join(self.repo, name)

        assert joined.is_new is is_new
        if before is not None:
            assert (joined.session.id == before.id) is not is_new
            assert joined.session.generation == before.generation + is_new
        self.sessions[name] = joined.session
        self.was_seen(name)

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        if not self.is_alive(name):
            self.refuses(Stale, "SESSION_OVER", lambda: sessions.leave(self.repo, self.sessions[name]))
            return
        self.settle()
        held_now = [grant for grant in self.grants if grant.session == self.sessions[name].id]

        freed = sessions.leave(self.repo, self.sessions[name])

        assert sorted(freed) == sorted({grant.pattern.text for grant in held_now})
        for grant in held_now:
            self.grants.remove(grant)
            self.lost.pop((name, grant.pattern.text), None)

    @rule(name=NAMES)
    def renew_session(self, name: str) -> None:
        known = self.secrets.load(name)
        if known is None or known.session != self.sessions[name].id:
            return  # it left, and with it its secret
        if not self.is_alive(name):
            self.refuses(Stale, "SESSION_OVER", lambda: sessions.prove(self.repo, known))
            return
        self.settle()
        sessions.prove(self.repo, known)
        self.was_seen(name)

    # ----------------------------------------------------------------------------------------- claims

    @rule(name=NAMES, text=PATTERNS, ttl_ms=TTLS)
    def claim_one(self, name: str, text: str, ttl_ms: int) -> None:
        self.claim(name, [text], ClaimMode.EXCLUSIVE, ttl_ms, is_partial=False)

    @rule(
        name=NAMES,
        texts=st.lists(PATTERNS, min_size=1, max_size=3, unique=True),
        mode=MODES,
        ttl_ms=TTLS,
        is_partial=st.booleans(),
    )
    def claim_some(self, name: str, texts: list[str], mode: ClaimMode, ttl_ms: int, is_partial: bool) -> None:
        self.claim(name, texts, mode, ttl_ms, is_partial=is_partial)

    def claim(self, name: str, texts: list[str], mode: ClaimMode, ttl_ms: int, *, is_partial: bool) -> None:
        asked = tuple(parse(text) for text in texts)
        request = claims.make_request(self.repo, asked, mode=mode, ttl_ms=ttl_ms, is_partial=is_partial)

        def take() -> Taken | Refused:
            return claims.take(self.repo, self.sessions[name], request)

        if not self.is_alive(name):
            self.refuses(Stale, "SESSION_OVER", take)
            return
        self.settle()
        free = [pattern for pattern in asked if self.is_free_for(name, pattern, mode)]
        taken = [pattern for pattern in asked if pattern not in free]

        outcome = take()

        self.was_seen(name)
        assert [refusal.pattern for refusal in outcome.refused] == [pattern.text for pattern in taken]
        for refusal, pattern in zip(outcome.refused, taken, strict=True):
            assert refusal.session in {grant.session for grant in self.others_on(name, pattern)}
        if taken and not (is_partial and free):
            assert isinstance(outcome, Refused)
            return
        assert isinstance(outcome, Taken)
        assert [claim.pattern for claim in outcome.granted] == [pattern.text for pattern in free]
        for claim, pattern in zip(outcome.granted, free, strict=True):
            assert claim.until == self.now + ttl_ms
            self.grant(name, pattern, mode, ttl_ms, claim.token)

    @precondition(lambda self: self.grants or self.lost)
    @rule(name=NAMES, text=PATTERNS)
    def renew(self, name: str, text: str) -> None:
        pattern = parse(text)

        def act() -> Taken:
            return held.renew(self.repo, self.sessions[name], (pattern,))

        if not self.is_alive(name):
            self.refuses(Stale, "SESSION_OVER", act)
            return
        self.settle()
        own = self.mine(name, pattern)
        if own:
            granted = act().granted
            assert {claim.token for claim in granted} == {grant.token for grant in own}
            for grant in own:
                self.grant(name, pattern, grant.mode, grant.ttl_ms, grant.token)
            return
        lost = self.lost.get((name, text))
        if lost is None or not self.is_free_for(name, pattern, lost[0].mode):
            self.refuses_not_held(name, pattern, act)
            return
        (claim,) = act().granted
        self.grant(name, pattern, lost[0].mode, lost[0].ttl_ms, claim.token)
        del self.lost[name, text]

    @precondition(lambda self: self.grants)
    @rule(name=NAMES)
    def renew_all(self, name: str) -> None:
        if not self.is_alive(name):
            return
        self.settle()
        own = [grant for grant in self.grants if grant.session == self.sessions[name].id]
        if not own and self.has_lost_all(name):
            self.refuses(Stale, "LEASE_OVER", lambda: held.renew(self.repo, self.sessions[name], None))
            return

        if not own and self.has_lost(name):
            with suppress(Stale):  # told so, if it was this session that lost it
                assert held.renew(self.repo, self.sessions[name], None).granted == ()
            return
        granted = held.renew(self.repo, self.sessions[name], None).granted

        assert {claim.token for claim in granted} == {grant.token for grant in own}
        for grant in own:
            self.grant(name, grant.pattern, grant.mode, grant.ttl_ms, grant.token)

    @precondition(lambda self: self.grants or self.lost)
    @rule(name=NAMES, text=PATTERNS)
    def release(self, name: str, text: str) -> None:
        pattern = parse(text)

        def act() -> tuple[str, ...]:
            return held.release(self.repo, self.sessions[name], (pattern,))

        if not self.is_alive(name):
            self.refuses(Stale, "SESSION_OVER", act)
            return
        self.settle()
        own = self.mine(name, pattern)
        if not own:
            self.refuses_not_held(name, pattern, act)
            return
        assert act() == (text,)
        self.forget(name, own)

    @precondition(lambda self: self.grants)
    @rule(name=NAMES)
    def release_all(self, name: str) -> None:
        if not self.is_alive(name):
            return
        self.settle()
        own = [grant for grant in self.grants if grant.session == self.sessions[name].id]
        if not own and self.has_lost_all(name):
            self.refuses(Stale, "LEASE_OVER", lambda: held.release(self.repo, self.sessions[name], None))
            return

        if not own and self.has_lost(name):
            with suppress(Stale):
                assert held.release(self.repo, self.sessions[name], None) == ()
            return
        freed = held.release(self.repo, self.sessions[name], None)

        assert sorted(freed) == sorted({grant.pattern.text for grant in own})
        self.forget(name, own)

    def has_lost(self, name: str) -> bool:
        return any(agent == name for agent, _ in self.lost)

    def forget(self, name: str, grants: Iterable[ModelClaim]) -> None:
        for grant in grants:
            self.grants.remove(grant)
            self.lost.pop((name, grant.pattern.text), None)

    @rule(name=NAMES, path=PATHS)
    def check(self, name: str, path: str) -> None:
        self.settle()
        session = self.sessions[name]
        covering = [
            grant for grant in self.grants if grant.session == session.id and covers(grant.pattern, path)
        ]
        others = self.others_on(name, parse(path, literal=True))
        expected = "held" if covering else "other" if others else "unclaimed"

        standing = check.check(self.repo, session, parse(path, literal=True))

        assert standing.state == expected
        for grant in covering:
            assert check.check(self.repo, session, parse(path, literal=True), grant.token).state == "held"

    # ------------------------------------------------------------------------------------------- time

    @rule(ms=st.sampled_from([1, SECOND // 2, SECOND, 9 * SECOND, 21 * SECOND, 59 * SECOND, 300 * SECOND]))
    def time_passes(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule(ms=st.sampled_from([0, 0, 0, -(10**10), 10**10]))
    def machine_has_trouble(self, ms: int) -> None:
        if ms:
            self.clock.jump_wall(ms)
        else:
            self.restart()

    def restart(self) -> None:
        """Nothing that was held is lost, and time does not go on behind the newest grant or sign of life.

        What had lapsed, but was still in the store because nobody had changed anything since, may be held
        again.
        """
        before, live = self.now, self.live()
        alive = {name for name in self.sessions if self.is_alive(name)}
        self.repo.store.close()
        self.clock.reboot(boot_ms=7)

        self.repo = self.open()

        assert self.now <= before
        assert all(seen_at <= self.now for seen_at in self.seen().values())
        stored = {row["token"] for row in self.look("claims_all")}
        for grant in list(self.grants):
            if grant.token not in stored:
                assert grant not in live
                self.lose(grant)
                self.grants.remove(grant)
        for token in stored - {grant.token for grant in self.grants}:
            self.grants.append(self.over.pop(token))
        assert set(live) <= set(self.live())
        assert alive <= {name for name in self.sessions if self.is_alive(name)}

    # -------------------------------------------------------------------------------------- invariants

    @invariant()
    def what_is_held_is_what_was_granted(self) -> None:
        if not hasattr(self, "repo"):
            return

        def look(snapshot: Snapshot) -> list[tuple[object, ...]]:
            claims = Claim.from_rows(snapshot.all("claims_all"))
            standing = [claim for claim in claims if not claim.is_over(snapshot.now)]
            return sorted(
                (claim.token, claim.pattern, claim.mode, claim.session, claim.granted_at, claim.ttl_ms)
                for claim in standing
            )

        expected = sorted(
            (grant.token, grant.pattern.text, grant.mode, grant.session, grant.granted_at, grant.ttl_ms)
            for grant in self.live()
        )
        assert self.repo.store.view(look) == expected

    @invariant()
    def nobody_holds_what_another_holds_alone(self) -> None:
        if not hasattr(self, "repo"):
            return
        live = self.live()
        for one in live:
            for other in live:
                if one.session != other.session and ClaimMode.EXCLUSIVE in (one.mode, other.mode):
                    assert not overlap(one.pattern, other.pattern), (one, other)

    def check_journal(self) -> None:
        """The chain holds, each grant is told once and ended once at most, and the rest is what is stored."""
        assert verify.verify(self.repo, []).trouble == ()
        entries = list(journal.read_entries(self.repo))
        stored = {row["token"] for row in self.look("claims_all")}
        taken = [entry.facts()["token"] for entry in entries if entry.kind == "claim.taken"]
        ended = [
            entry.facts()["token"] for entry in entries if entry.kind in {"claim.released", "claim.lapsed"}
        ]
        assert taken == self.tokens[1:]
        assert len(ended) == len(set(ended))
        assert set(taken) - set(ended) == stored


@pytest.fixture(scope="module")
def bare_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("machine") / "repository")


@pytest.mark.promise(
    "claims.model",
    "Whatever sessions and clocks do, the held claims match a simple model, and an exclusive claim never "
    "has a second holder.",
)
@pytest.mark.timeout(600 * MORE)  # a failure is made small first, which takes its time
def test_sqlite_agrees_with_the_model(bare_repository: Path) -> None:
    machine = type("SqliteMachine", (ClaimsMachine,), {"repository": bare_repository})

    run_machine(machine, settings=settings(max_examples=60 * MORE, stateful_step_count=50))


@pytest.mark.postgres
@pytest.mark.timeout(600 * MORE)  # a failure is made small first, which takes its time
def test_postgres_agrees_with_the_model(bare_repository: Path, postgres_url: str) -> None:
    machine = type(
        "PostgresMachine", (ClaimsMachine,), {"repository": bare_repository, "place": postgres_url}
    )

    run_machine(machine, settings=settings(max_examples=10 * MORE, stateful_step_count=40))
