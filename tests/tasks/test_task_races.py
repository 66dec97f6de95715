"""Sixty-four processes ask for the next task at once: never one task to two, never two on one path."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from landlane.app import session_extensions
from landlane.errors import Malformed
from landlane.tasks import finish
from landlane.tasks.add import Added, add_task
from landlane.tasks.change import drop_task
from landlane.tasks.finish import add_dependency
from landlane.tasks.model import NewTask
from tests.support.pause import Pause
from tests.support.project import Background, Project
from tests.support.tasks import add, expect_no_task, finish_task, state, take

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 64
ROUNDS = int(os.environ.get("LANDLANE_TASK_ROUNDS", "2"))
SEED = int(os.environ.get("LANDLANE_TASK_SEED", "0")) or random.SystemRandom().randrange(2**32)

pytestmark = [pytest.mark.contract, pytest.mark.timeout(120 + 2 * ROUNDS), pytest.mark.soak]


def race(repository: Path, store: str, count: int, paths: str) -> int:
    """Rounds of racing for so many tasks; tells how often somebody won."""
    print(f"seed {SEED}")
    words = [str(repository), store, str(PROCESSES), str(ROUNDS), str(count), paths, str(SEED)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.tasks.task_racing", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100 + 2 * ROUNDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["won"]


@pytest.mark.slow
def test_one_task_goes_to_one_of_sixty_four(repository: Path, store: str) -> None:
    assert race(repository, store, 1, "none") == ROUNDS


@pytest.mark.promise(
    "tasks.one-owner",
    "When many processes ask for the next task at once, no two get the same one.",
)
@pytest.mark.slow
def test_fifty_tasks_go_to_fifty_of_sixty_four(repository: Path, store: str) -> None:
    assert race(repository, store, 50, "none") == 50 * ROUNDS


@pytest.mark.promise("tasks.no-shared-path", "No two active tasks ever have overlapping paths.")
@pytest.mark.slow
def test_no_two_active_tasks_ever_have_overlapping_paths(repository: Path, store: str) -> None:
    assert race(repository, store, 50, "paths") >= ROUNDS


# ------------------------------------------------------------------------------ forced interleavings


def test_a_dependent_added_while_a_task_ends_does_not_wait_forever(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    add(ann, "a")
    take(ann)
    pause = Pause(finish.unblock_dependents)
    monkeypatch.setattr(finish, "unblock_dependents", pause)
    ending = Background(lambda: finish_task(ann, "T1"))
    assert pause.reached.wait(30)
    adding = Background(lambda: add(bob, "b", after=["T1"]))
    adding.join(0.3)
    pause.resume()
    assert ending.result().state == "done"
    adding.result()
    assert state(live_project, "T2") == "ready"


def test_a_task_dropped_while_its_owner_vanishes_stays_dropped(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    add(ann, "a")
    take(ann)
    pause = Pause(session_extensions.return_tasks)
    monkeypatch.setattr(session_extensions, "return_tasks", pause)
    leaving = Background(ann.leave)
    assert pause.reached.wait(30)
    dropping = Background(lambda: drop_task(bob.repo, bob.session, "T1", "no"))
    dropping.join(0.3)
    pause.resume()
    leaving.result()
    dropping.result()
    assert state(live_project, "T1") == "dropped"


def test_two_sessions_that_add_the_same_work_at_once_see_each_other(live_project: Project) -> None:
    agents = [live_project.agent(f"a{number}") for number in range(8)]
    start = threading.Barrier(len(agents))

    def add_it(number: int) -> object:
        start.wait(30)
        new = NewTask(title="Parse the dates", kind="chore")
        return add_task(agents[number].repo, agents[number].session, new)

    outcomes = [one.result() for one in [Background(lambda n=n: add_it(n)) for n in range(len(agents))]]
    assert sum(isinstance(one, Added) for one in outcomes) == 1


@pytest.mark.promise(
    "tasks.one-key-one-task",
    "Adding a task with the same key again returns the same task, even at the same instant.",
)
def test_one_key_added_by_many_at_once_is_one_task(live_project: Project) -> None:
    agents = [live_project.agent(f"a{number}") for number in range(8)]
    start = threading.Barrier(len(agents))

    def add_it(number: int) -> str:
        start.wait(30)
        return add(agents[number], f"n{number}", key="one").id

    assert {one.result() for one in [Background(lambda n=n: add_it(n)) for n in range(len(agents))]} == {"T1"}


def test_two_dependencies_that_would_close_a_ring_together_cannot_both_be_added(
    live_project: Project,
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    for number in range(3 * ROUNDS):
        one, other = add(ann, f"a{number}").id, add(ann, f"b{number}").id
        start = threading.Barrier(2)

        def let_wait(agent: object, task: str, before: str, start: threading.Barrier = start) -> bool:
            start.wait(30)
            try:
                add_dependency(agent.repo, agent.session, task, before)  # type: ignore[attr-defined]
            except Malformed:
                return False
            return True

        here = Background(lambda let=let_wait, a=one, b=other: let(ann, a, b))
        there = Background(lambda let=let_wait, a=one, b=other: let(bob, b, a))
        assert sorted([here.result(), there.result()]) == [False, True]


def test_the_last_two_dependencies_may_end_at_once(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    for number in range(3 * ROUNDS):
        first, second = add(ann, f"a{number}").id, add(ann, f"b{number}").id
        third = add(ann, f"c{number}", after=[first, second]).id
        assert {take(ann).task.id, take(bob).task.id} == {first, second}
        start = threading.Barrier(2)

        def end_it(agent: object, task: str, start: threading.Barrier = start) -> None:
            start.wait(30)
            finish_task(agent, task)  # type: ignore[arg-type]

        both = [
            Background(lambda finish=end_it, task=first: finish(ann, task)),
            Background(lambda finish=end_it, task=second: finish(bob, task)),
        ]
        for one in both:
            one.result()
        assert take(ann).task.id == third
        finish_task(ann, third)
    expect_no_task(ann)
