"""The queue is killed at every step and at random: the target is always a tested tree, nothing is lost."""

from __future__ import annotations

import functools
import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from landlane.git import temporary_refs
from landlane.journal.read import read_entries
from landlane.landing import after_landing as settling
from landlane.landing import submit as submitting
from landlane.landing.outcomes import eject_entry
from landlane.landing.records import get_landing, list_landings
from tests.support.git import git_line
from tests.support.killing import (
    Saved,
    Yard,
    claim,
    fork,
    hand_in,
    is_stopped,
    join,
    kill_at,
    run_queue,
    steps_of,
    wait_for,
)
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("LANDLANE_LANDING_KILLS", "4"))  # at random moments; 100 and more in longer runs
LEASE_MS = 900

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture
def yard(tmp_path: Path, repository: Path) -> Yard:
    folder = tmp_path / "yard"
    folder.mkdir()
    return Yard(repository.rename(folder / "repository"))


def fill(yard: Yard) -> dict[str, str]:
    """Entries of every kind, and how each must end."""
    repo = yard.open()
    try:
        return {
            yard.enter(repo, "one", {"one.txt": "one\n"}).id: "landed",
            yard.enter_task(repo, "two", {"two.txt": "two\n"}).id: "landed",
            yard.enter(repo, "red", {"red.txt": "red\n"}).id: "bounced",
            yard.enter_task(repo, "three", {"three.txt": "three\n"}).id: "landed",
            yard.enter(repo, "four", {"four.txt": "four\n"}).id: "landed",
        }
    finally:
        repo.close()


@pytest.mark.promise(
    "landing.crash-anywhere",
    "Killed at any step, the queue leaves a tested target, and no entry is lost or landed twice.",
)
def test_a_runner_killed_at_any_step_leaves_a_tested_target_and_loses_nothing(
    yard: Yard, tmp_path: Path
) -> None:
    expected = fill(yard)
    saved = Saved(tmp_path / "yard", tmp_path / "saved")
    every = list(steps_of(yard.repository))
    yard.check_end(expected)
    assert {name for name, _ in every} >= {
        *("testing", "merged", "checking", "tested", "written", "moved", "forwarded", "landed", "settled"),
        "bounced",
    }
    for step, count in every if KILLS >= 100 else [(step, count) for step, count in every if count == 1]:
        saved.restore()
        yard.tips.clear()
        killed = wait_for(fork(lambda at=(step, count): run_queue(yard.repository, kill_at(*at))))
        assert killed == -signal.SIGKILL, f"{step} {count}: {killed}"
        yard.check_target()
        assert run_queue(yard.repository) == "", f"after {step} {count}"
        yard.check_end(expected)


def test_a_runner_killed_while_it_recovers_leaves_nothing_between(yard: Yard, tmp_path: Path) -> None:
    expected = fill(yard)
    saved = Saved(tmp_path / "yard", tmp_path / "saved")
    for first in ("written", "moved"):
        for second in ("forwarded", "recovered"):
            saved.restore()
            yard.tips.clear()
            assert wait_for(fork(lambda at=first: run_queue(yard.repository, kill_at(at, 1)))) < 0
            wait_for(fork(lambda at=second: run_queue(yard.repository, kill_at(at, 1))))
            yard.check_target()
            assert run_queue(yard.repository) == ""
            yard.check_end(expected)


def test_a_runner_killed_at_random_moments_leaves_a_tested_target_and_loses_nothing(
    yard: Yard, tmp_path: Path
) -> None:
    seed = int(os.environ.get("LANDLANE_SEED", "") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    expected = fill(yard)
    saved = Saved(tmp_path / "yard", tmp_path / "saved")
    begun = time.monotonic()
    assert wait_for(fork(lambda: run_queue(yard.repository))) == 0
    length = time.monotonic() - begun
    yard.check_end(expected)
    kills = 0
    while kills < KILLS:
        saved.restore()
        yard.tips.clear()
        for _ in range(chance.randint(1, 4)):
            kills += _kill_at_random(yard, chance, length)
            yard.check_target()
        assert run_queue(yard.repository) == "", f"seed {seed}"
        yard.check_end(expected)


def _kill_at_random(yard: Yard, chance: random.Random, length: float) -> int:
    """Kill a runner, alone or with all it runs, some time after its start; tells whether it still ran."""
    pid = fork(lambda: run_queue(yard.repository))
    kill = os.killpg if chance.random() < 0.5 else os.kill
    await_moment(chance.uniform(0, length * 1.1))
    try:
        kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # it has not made its own group yet; or it has ended, and does not mind
    return int(wait_for(pid) == -signal.SIGKILL)


def test_a_check_that_outlives_its_runner_does_not_meddle_with_the_next(
    tmp_path: Path, repository: Path
) -> None:
    gate, begun = tmp_path / "gate", tmp_path / "begun"
    os.mkfifo(gate)
    yard = Yard(repository, first=f"if mkdir {begun}; then read line < {gate}; echo late > README.md; fi")
    repo = yard.open()
    landing = yard.enter(repo, "one", {"one.txt": "one\n"})
    repo.close()
    pid = fork(lambda: run_queue(yard.repository))
    wait_until(begun.exists)
    os.kill(pid, signal.SIGKILL)
    wait_for(pid)
    assert run_queue(yard.repository) == ""
    yard.check_end({landing.id: "landed"})
    with pytest.raises(OSError, match="No such device"):  # nobody waits there any more
        os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))


@pytest.mark.promise(
    "landing.overtaken-writes-nothing",
    "A queue runner that was paused past its lease writes nothing when it resumes.",
)
def test_a_stopped_runner_that_wakes_up_writes_nothing(yard: Yard, tmp_path: Path) -> None:
    expected = fill(yard)
    saved = Saved(tmp_path / "yard", tmp_path / "saved")
    for step in ("testing", "tested", "written", "moved", "landed") if KILLS >= 100 else ("tested", "moved"):
        saved.restore()
        yard.tips.clear()
        stop = kill_at(step, 1, signal.SIGSTOP)
        pid = fork(lambda stop=stop: run_queue(yard.repository, stop, lease_ms=LEASE_MS))
        try:
            wait_until(lambda pid=pid: is_stopped(pid))
            wait_until(lambda: run_queue(yard.repository) != "busy")
            yard.check_end(expected)
            tip, count = yard.tip, len(_entries(yard))
        finally:
            os.kill(pid, signal.SIGCONT)
        assert wait_for(pid) == 1, step  # overtaken, and it says so
        assert yard.tip == tip
        assert len(_entries(yard)) == count
        yard.check_end(expected)


def test_a_stopped_runner_cannot_bring_back_what_was_taken_out(yard: Yard) -> None:
    yard.branch("one", {"one.txt": "one\n"})
    repo = yard.open()
    ann = join(repo, "ann")
    claim(repo, ann, "one.txt")
    landing = hand_in(repo, ann, "one")
    repo.close()
    stop = kill_at("written", 1, signal.SIGSTOP)
    pid = fork(lambda: run_queue(yard.repository, stop, lease_ms=LEASE_MS))
    try:
        wait_until(lambda: is_stopped(pid))
        # Whoever takes over finds the move, sees that it was not made, and is killed before it begins anew.
        wait_until(lambda: wait_for(fork(lambda: run_queue(yard.repository, kill_at("recovered", 1)))) < 0)
        repo = yard.open()
        eject_entry(repo.require_git(), ann, landing.id, "wrong branch")
        repo.close()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert wait_for(pid) == 1
    assert yard.tip == yard.start
    yard.check_end({landing.id: "ejected"})


def test_land_killed_around_its_pin_can_be_said_again(yard: Yard) -> None:
    repo = yard.open()
    session = join(repo, "ann")
    yard.branch("one", {"one.txt": "one\n"})
    claim(repo, session, "one.txt")
    repo.close()

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def killed_in(name: str) -> int:
        def work() -> None:
            child = yard.open()
            setattr(submitting, name, die)
            hand_in(child, session, "one")

        return wait_for(fork(work))

    assert killed_in("enqueue") == -signal.SIGKILL
    assert git_line(yard.repository, "for-each-ref", "refs/landlane/landing") != ""
    repo = yard.open()
    assert list_landings(repo, ()) == []
    repo.close()
    assert run_queue(yard.repository) == ""
    assert git_line(yard.repository, "for-each-ref", "refs/landlane/landing") == ""
    repo = yard.open()
    landing = hand_in(repo, session, "one")
    repo.close()
    assert run_queue(yard.repository) == ""
    yard.check_end({landing.id: "landed"})


def test_land_killed_at_random_moments_enters_a_branch_once(yard: Yard) -> None:
    seed = int(os.environ.get("LANDLANE_SEED", "") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    repo = yard.open()
    ann = join(repo, "ann")
    claim(repo, ann, "one.txt")
    repo.close()
    yard.branch("one", {"one.txt": "one\n"})

    def submit() -> None:
        child = yard.open()
        hand_in(child, ann, "one")
        child.close()

    for _ in range(KILLS):
        pid = fork(submit)
        await_moment(chance.uniform(0, 0.15))
        os.kill(pid, signal.SIGKILL)
        wait_for(pid)
    repo = yard.open()
    landing = hand_in(repo, ann, "one")
    repo.close()
    assert run_queue(yard.repository) == ""
    yard.check_end({landing.id: "landed"})


def await_moment(seconds: float) -> None:
    """Let a child go on for a moment of chance."""
    end_at = time.monotonic() + seconds
    while time.monotonic() < end_at:
        time.sleep(0.001)


@pytest.mark.parametrize("name", ["refs/heads/main", "packed-refs", "index"])
def test_a_lock_that_a_killed_git_left_is_no_obstacle(yard: Yard, name: str) -> None:
    repo = yard.open()
    landing = yard.enter(repo, "one", {"one.txt": "one\n"})
    repo.close()
    lock = yard.repository / ".git" / f"{name}.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    assert run_queue(yard.repository) == ""
    yard.check_end({landing.id: "landed"})


def test_a_pin_that_was_lost_is_made_again(yard: Yard) -> None:
    repo = yard.open()
    landing = yard.enter(repo, "one", {"one.txt": "one\n"})
    git_line(yard.repository, "update-ref", "-d", temporary_refs.submitted_ref(landing.head))
    settling.repair_submitted_refs(
        repo.require_git(), settling.find_target(repo.require_git().home, repo.settings)
    )
    assert temporary_refs.list_submitted(repo.require_git().home) == [landing.head]
    repo.close()


@pytest.mark.parametrize(
    "step", ["closing", "saved", "renamed", "forgotten", "removed", "unpinned", "closed"]
)
def test_a_runner_killed_while_it_closes_a_workspace_is_made_up_for(yard: Yard, step: str) -> None:
    repo = yard.open()
    landing = yard.enter_task(repo, "two", {"two.txt": "two\n"})
    repo.close()

    def work() -> None:
        close = functools.partial(settling.close_workspace, on_step=kill_at(step, 1))
        setattr(settling, "close_workspace", close)  # noqa: B010 - in a child that is about to die
        run_queue(yard.repository)

    assert wait_for(fork(work)) == -signal.SIGKILL
    assert run_queue(yard.repository) == ""
    repo = yard.open()
    assert get_landing(repo, landing.id).is_settled
    repo.close()
    yard.check_end({landing.id: "landed"})


def _entries(yard: Yard) -> list[str]:
    repo = yard.open()
    try:
        return [entry.hash for entry in read_entries(repo)]
    finally:
        repo.close()
