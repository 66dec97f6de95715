"""Races that the rough traffic once won, each forced to happen again: nobody is told what is not so."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.app.plain_files import Mirror, journal_path, read_journal
from landlane.claims import held
from landlane.claims import take as claims
from landlane.claims.model import Taken
from landlane.claims.take import list_claims
from landlane.errors import StoreTransient
from landlane.sessions import join as sessions
from landlane.sessions.secrets import SecretFiles
from tests.support.pause import Pause
from tests.support.project import Background, Project, let_time_pass
from tests.support.store_stress import Replay, all_entries
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.ids import Credentials
    from landlane.repository import Repository

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(60)]


def assert_journal_makes_sense(live_project: Project) -> None:
    repo = live_project.repo()
    replay = Replay().walk(all_entries(repo.store))
    assert replay.trouble == []
    stored = repo.store.view(lambda snapshot: snapshot.all("claims_all"))
    assert {row["token"] for row in stored} == set(replay.standing)


def test_two_first_commands_under_one_name_share_its_session(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = live_project.repo(), live_project.repo()
    load = SecretFiles.load
    joined: list[sessions.Joined] = []

    def load_too_early(files: SecretFiles, agent: str) -> Credentials | None:
        """The second one looks for the secret just before the first one has it."""
        found = load(files, agent)
        if not joined:
            monkeypatch.setattr(SecretFiles, "load", load)
            joined.append(sessions.join(first, agent))
        return found

    monkeypatch.setattr(SecretFiles, "load", load_too_early)
    late = sessions.join(second, "ann")
    assert late.session.id == joined[0].session.id
    assert late.secret == joined[0].secret
    assert (joined[0].is_new, late.is_new) == (True, False)


def test_forgetting_the_secret_of_a_session_spares_that_of_its_successor(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving, joining = live_project.repo(), live_project.repo()
    ann = sessions.join(leaving, "ann").session
    unlink = os.unlink
    successor: list[Background[sessions.Joined]] = []

    def unlink_late(path: str) -> None:
        """The name is joined anew between the look at the secret and its removal, if that is possible."""
        if os.path.basename(path) == "ann" and not successor:
            successor.append(Background(lambda: sessions.join(joining, "ann")))
            successor[0]._thread.join(0.5)
        unlink(path)

    monkeypatch.setattr(os, "unlink", unlink_late)
    sessions.leave(leaving, ann)
    begun = successor[0].result()
    assert begun.session.generation == 2
    assert sessions.join(live_project.repo(), "ann").session.id == begun.session.id


def take(repo: Repository, session: sessions.Session, text: str, ttl_ms: int = 600_000) -> object:
    request = claims.make_request(repo, (repo.git.pattern_of(text, "glob"),), ttl_ms=ttl_ms)
    return claims.take(repo, session, request)


def test_a_session_cannot_end_while_it_is_being_given_something(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking, leaving = live_project.repo(), live_project.repo()
    ann = sessions.join(taking, "ann").session
    pause = Pause(claims.find_obstacles)
    monkeypatch.setattr(claims, "find_obstacles", pause)
    granting = Background(lambda: take(taking, ann, "src/*.py"))
    assert pause.reached.wait(30)
    left = Background(lambda: sessions.leave(leaving, ann))
    left._thread.join(0.5)
    assert left.is_running
    pause.resume()
    assert isinstance(granting.result(), Taken)
    assert left.result() == ("src/*.py",)
    assert_journal_makes_sense(live_project)


@pytest.mark.slow
def test_what_is_being_renewed_cannot_lapse_meanwhile(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewing, sweeping, looking = live_project.repo(), live_project.repo(), live_project.repo()
    ann = sessions.join(renewing, "ann").session
    bob = sessions.join(sweeping, "bob").session
    path = renewing.git.pattern_of("src/a.py", "glob")
    taken = take(renewing, ann, "src/a.py", 60_000)
    assert isinstance(taken, Taken)
    let_time_pass(renewing.store, 57_000)
    pause = Pause(held.held_by)
    monkeypatch.setattr(held, "held_by", pause)
    renewed = Background(lambda: held.renew(renewing, ann, (path,)))
    assert pause.reached.wait(30)
    wait_until(lambda: looking.store.view(lambda snapshot: snapshot.now) > taken.granted[0].until - 57_000)
    other = Background(lambda: take(sweeping, bob, "elsewhere/*.py"))  # which sweeps what has lapsed
    other._thread.join(0.5)
    pause.resume()
    (again,) = renewed.result().granted
    assert isinstance(other.result(), Taken)
    assert again.token in {claim.token for claim in list_claims(looking)}
    assert_journal_makes_sense(live_project)


def test_a_short_lease_taken_late_in_a_long_session_goes_to_the_next_agent(live_project: Project) -> None:
    holder, other = live_project.repo(), live_project.repo()
    ann = sessions.join(holder, "ann").session
    let_time_pass(holder.store, ann.lease_ms - 60_000)  # its session has a minute left
    assert isinstance(take(holder, ann, "src/a.py", 90_000), Taken)
    let_time_pass(holder.store, 91_000)  # the lease is over, the session is not
    bob = sessions.join(other, "bob").session
    outcome = Background(lambda: take(other, bob, "src/a.py")).result(20)
    assert isinstance(outcome, Taken)
    assert_journal_makes_sense(live_project)


def test_a_store_that_fails_after_the_commit_does_not_fail_the_claim(
    repository: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = open_repository(str(repository))
    ann = sessions.join(repo, "ann").session
    assert isinstance(take(repo, ann, "src/a.py"), Taken)

    def fail(*_: object) -> None:
        raise StoreTransient("the server went away", code="STORE_UNREACHABLE")

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "_append_new", fail)
        repo.settle()
    repo.settle()
    assert list(read_journal(journal_path(repo))) == all_entries(repo.store)
    repo.close()


@pytest.mark.slow
def test_whoever_copies_the_journal_is_not_kept_for_ever_by_those_who_write_on(
    repository: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others write faster than one process can copy; the copy is complete when the next one is through."""
    repo, writer = open_repository(str(repository)), open_repository(str(repository))
    ann = sessions.join(writer, "ann").session
    entries = repo.store.entries
    numbers = iter(range(10**6))

    def entries_and_more(*arguments: int) -> object:
        take(writer, ann, f"src/{next(numbers)}.py")
        return entries(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "entries", entries_and_more)
        began = time.monotonic()
        repo.settle()
        assert time.monotonic() - began < 10
    repo.settle()
    assert list(read_journal(journal_path(repo))) == all_entries(repo.store)
    repo.close()
    writer.close()
