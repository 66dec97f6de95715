"""Clocks that jump and machines that restart: no lease is stolen, shortened or prolonged by the calendar."""

from __future__ import annotations

import shutil
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from landlane.api import Claim, Landlane, Refused, Taken
from landlane.app.open import open_repository
from landlane.claims import take as claims
from landlane.claims import wait as waiting
from landlane.claims.wait import list_waiters
from landlane.ids import epoch_of
from landlane.sessions import join as sessions
from landlane.sessions import wait_queue
from landlane.testing.fake_clock import FakeClock
from tests.support.project import Background, let_time_pass
from tests.support.store_stress import Replay, all_entries
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.simulation, pytest.mark.timeout(60)]

HOURS = 3_600_000
JUMPS = [2 * HOURS, -2 * HOURS]


def take(agent: Landlane, pattern: str, ttl: str = "10m") -> Claim:
    outcome = agent.claim(pattern, ttl=ttl)
    assert isinstance(outcome, Taken)
    return outcome.granted[0]


def lease_end_ms(agent: Landlane, pattern: str) -> int:
    """When the lease ends by the store's clock, which no calendar moves."""
    (claim,) = claims.list_claims(agent._repo, (agent._repo.git.pattern(pattern, is_literal=True),))
    return claim.until


def is_refused(agent: Landlane, pattern: str) -> bool:
    return isinstance(agent.claim(pattern), Refused)


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_a_calendar_that_jumps_while_everybody_works_moves_no_lease(repository: Path, jump_ms: int) -> None:
    clock = FakeClock()
    ann = Landlane(repository, agent="ann", clock=clock)
    bob = Landlane(repository, agent="bob", clock=clock)
    claim = take(ann, "src/a.py", "10m")
    end_ms = lease_end_ms(ann, "src/a.py")
    clock.advance(9 * 60_000)
    clock.jump_wall(jump_ms)
    assert is_refused(bob, "src/a.py")
    late = Landlane(repository, agent="late", clock=clock)  # who opens the store only now sees the same time
    assert lease_end_ms(late, "src/a.py") == end_ms
    clock.advance(60_000 - 1)
    assert is_refused(bob, "src/a.py")
    clock.advance(1)
    assert take(bob, "src/a.py").token > claim.token
    for agent in (ann, bob, late):
        agent.close()


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_a_real_machine_whose_calendar_is_set_steals_and_prolongs_nothing(
    repository: Path, store: str, monkeypatch: pytest.MonkeyPatch, jump_ms: int
) -> None:
    ann = Landlane(repository, agent="ann")
    bob = Landlane(repository, agent="bob")
    take(ann, "long.py", "10m")
    claim = take(ann, "short.py", "1m")
    end_ms = lease_end_ms(ann, "short.py")
    calendar = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: calendar() + jump_ms * 1_000_000)
    assert is_refused(bob, "long.py")
    assert is_refused(bob, "short.py")
    let_time_pass(bob._repo.store, 59_000)
    outcome = bob.claim("short.py", wait="20s")
    assert isinstance(outcome, Taken)
    granted_ms = lease_end_ms(bob, "short.py") - outcome.granted[0].ttl // timedelta(milliseconds=1)
    assert 0 <= granted_ms - (end_ms - 59_000) < 13_000
    assert outcome.granted[0].token > claim.token
    assert is_refused(bob, "long.py")
    ann.close()
    bob.close()


def test_a_restart_keeps_a_lease_for_at_most_its_length_and_raises_the_epoch(repository: Path) -> None:
    clock = FakeClock(boot_ms=50_000_000)
    ann = Landlane(repository, agent="ann", clock=clock)
    before = take(ann, "src/a.py", "10m")
    clock.advance(4 * 60_000)
    ann.close()
    clock.reboot(boot_ms=0)
    bob = Landlane(repository, agent="bob", clock=clock)
    assert is_refused(bob, "src/a.py")
    left = lease_end_ms(bob, "src/a.py") - bob._repo.store.view(lambda snapshot: snapshot.now)
    assert 6 * 60_000 <= left <= 10 * 60_000
    clock.advance(left)
    after = take(bob, "src/a.py")
    assert epoch_of(after.token) == epoch_of(before.token) + 1
    assert Replay().walk(all_entries(bob._repo.store)).trouble == []
    bob.close()


def test_many_restarts_neither_wear_a_lease_away_nor_keep_it_for_ever(repository: Path) -> None:
    clock = FakeClock()
    ann = Landlane(repository, agent="ann", clock=clock)
    take(ann, "src/a.py", "10m")
    ann.close()
    held_minutes = 0
    for number in range(30):
        clock.reboot(boot_ms=1000 * number)
        with Landlane(repository, agent="bob", clock=clock) as bob:
            if not is_refused(bob, "src/a.py"):
                break
            clock.advance(60_000)
            held_minutes += 1
            take(bob, f"own/{number}.py")  # the store learns how late it is
    assert 8 <= held_minutes <= 12


def test_a_waiter_that_died_in_a_restart_stands_in_nobodys_way(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had said all the time that it was there, long after anybody else was last heard of."""
    monkeypatch.setattr(wait_queue, "BEAT_MS", 20)
    clock = FakeClock()
    ann = Landlane(repository, agent="ann", clock=clock)
    take(ann, "src/a.py", "10m")
    repo = open_repository(str(repository), clock=clock)
    waiter = sessions.join(repo, "waiter").session
    request = claims.make_request(repo, (repo.git.pattern("src/**"),))
    waiting_call = Background(lambda: waiting.wait_for_claims(repo, waiter, request, 100 * HOURS))
    wait_until(lambda: bool(ann._repo.store.view(list_waiters)))
    for _ in range(2):  # nobody shows a sign of life but the waiter
        clock.advance(270_000)
        now = ann._repo.store.view(lambda snapshot: snapshot.now)
        wait_until(
            lambda now=now: ann._repo.store.view(lambda r: r.all("waiters_all"))[0]["alive_until"] > now
        )
    assert waiting_call.is_running

    # The power goes: what is on the disk is all there is, and the waiter is no more.
    wreck = repository.with_name("wreck")
    copy_repository(repository, wreck)
    clock.advance(2 * 60_000)  # ends the wait here: the lease is over
    waiting_call.result()
    after = FakeClock()
    bob = Landlane(wreck, agent="bob", clock=after)
    assert is_refused(bob, "src/a.py")  # ann's lease goes on
    assert isinstance(bob.claim("src/b.py"), Taken), "only the dead waiter could be in the way"
    bob.close()
    ann.close()
    repo.close()


def copy_repository(source: Path, target: Path) -> None:
    """A copy as after a crash: every file as it is now."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("wake", "store.db-shm"))
