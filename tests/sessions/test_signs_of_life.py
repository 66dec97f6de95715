"""When a session was last active, to the second, and what it did then, without a write for each call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from landlane.sessions.leases import get_session
from landlane.sessions.signs_of_life import RECORD_BYTES, Activity, newer_activity, read_activity, show_life
from tests.support.project import POSTGRES_ONLY, SECOND, SQLITE_ONLY

if TYPE_CHECKING:
    from landlane.sessions.model import Session
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract


def stored(agent: Agent) -> Session:
    return agent.repo.store.view(lambda snapshot: get_session(snapshot, agent.session.id))


def activity(agent: Agent) -> Activity:
    return read_activity(agent.repo, stored(agent))


def file_of(agent: Agent) -> str:
    return os.path.join(agent.repo.store.activity_folder, agent.session.id)


@SQLITE_ONLY
def test_a_sign_of_life_is_exact_and_writes_nothing_to_the_store(live_project: Project) -> None:
    ann = live_project.agent("ann")
    before, began = stored(ann).seen_at, ann.repo.wall_ms()
    os.utime(file_of(ann), (1, 1))

    show_life(ann.repo, ann.session, "editing src/api.py")

    found = activity(ann)
    assert stored(ann).seen_at == before
    assert (found.doing, found.accuracy_ms) == ("editing src/api.py", SECOND)
    assert os.stat(file_of(ann)).st_mtime > 1
    assert began - SECOND < found.seen_at <= ann.repo.wall_ms()


@SQLITE_ONLY
def test_a_call_without_an_action_keeps_the_last_one(project: Project) -> None:
    ann = project.agent("ann")
    show_life(ann.repo, ann.session, "editing " + "ä" * 500)
    show_life(ann.repo, ann.session, "pytest\n  tests")
    os.utime(file_of(ann), (1, 1))
    show_life(ann.repo, ann.session)

    assert activity(ann).doing == "pytest tests"
    assert os.stat(file_of(ann)).st_size == RECORD_BYTES
    assert os.stat(file_of(ann)).st_mtime > 1


@SQLITE_ONLY
def test_without_its_file_a_session_is_as_exact_as_its_lease(project: Project) -> None:
    ann = project.agent("ann")
    os.unlink(file_of(ann))

    found = activity(ann)

    assert found.accuracy_ms == stored(ann).shortest_ms // 3
    assert found.seen_at == ann.repo.store.wall_of(stored(ann).seen_at)


@SQLITE_ONLY
def test_files_of_sessions_that_ended_are_removed(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    os.utime(file_of(bob), (1, 1))  # it ended without leaving, long ago
    ann.leave()
    project.agent("cara")

    assert len(os.listdir(ann.repo.store.activity_folder)) == 1


@SQLITE_ONLY
def test_a_file_that_cannot_be_written_does_not_fail_a_call(project: Project) -> None:
    ann = project.agent("ann")
    os.unlink(file_of(ann))
    os.mkdir(file_of(ann))

    show_life(ann.repo, ann.session, "editing a")
    assert activity(ann).doing == ""


@POSTGRES_ONLY
@pytest.mark.promise(
    "sessions.one-write-in-15-seconds",
    "In a shared store, signs of life cost at most one write per session in 15 seconds.",
)
def test_a_shared_store_gets_one_write_in_15_seconds(project: Project) -> None:
    ann = project.agent("ann")
    began = stored(ann).seen_at
    for _ in range(14):
        project.clock.advance(SECOND)
        show_life(ann.repo, stored(ann), "editing a")
    assert stored(ann).seen_at == began
    assert activity(ann).doing == ""

    project.clock.advance(2 * SECOND)
    show_life(ann.repo, stored(ann), "editing b")
    project.clock.advance(SECOND)
    show_life(ann.repo, stored(ann), "editing c")

    assert stored(ann).seen_at == began + 16 * SECOND
    assert (activity(ann).doing, activity(ann).accuracy_ms) == ("editing b", 15 * SECOND)


def test_the_newer_activity_counts_and_takes_over_the_action() -> None:
    old = Activity(seen_at=1, accuracy_ms=1000, doing="editing a")
    silent, busy = Activity(seen_at=2, accuracy_ms=5000), Activity(seen_at=2, accuracy_ms=5000, doing="b")

    assert newer_activity(silent, old) == Activity(seen_at=2, accuracy_ms=5000, doing="editing a")
    assert newer_activity(old, busy) == busy
