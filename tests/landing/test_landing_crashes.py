"""The queue is killed at every step and at random: the target is always a tested tree, nothing is lost."""

from __future__ import annotations

import functools
import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from landlane.git.target import list_submitted, submitted_ref
from landlane.journal.read import read_entries
from landlane.landing import after_landing as settling
from landlane.landing import submit as submitting
from landlane.landing.decide import eject_entry
from landlane.landing.records import get_landing, list_landings
from tests.support.git import git_line
from tests.support.landing_crashes import (
    CrashTestbed,
    FolderBackup,
    claim,
    join,
    kill_at,
    list_steps,
    run_queue,
    submit,
)
from tests.support.processes import fork, is_stopped, wait_for_exit
from tests.support.shell import Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("LANDLANE_LANDING_KILLS", "4"))  # at random moments; 100 and more in longer runs
LEASE_MS = 900

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture
def testbed(tmp_path: Path, repository: Path) -> CrashTestbed:
    folder = tmp_path / "testbed"
    folder.mkdir()
    return CrashTestbed(repository.rename(folder / "repository"))


def fill(testbed: CrashTestbed) -> dict[str, str]:
    """Entries of every kind, and how each must end."""
    repo = testbed.open()
    try:
        return {
            testbed.submit(repo, "one", {"one.txt": "one\n"}).id: "landed",
            testbed.submit_task(repo, "two", {"two.txt": "two\n"}).id: "landed",
            testbed.submit(repo, "red", {"red.txt": "red\n"}).id: "bounced",
            testbed.submit_task(repo, "three", {"three.txt": "three\n"}).id: "landed",
            testbed.submit(repo, "four", {"four.txt": "four\n"}).id: "landed",
        }
    finally:
        repo.close()


@pytest.mark.promise(
    "landing.crash-anywhere",
    "Killed at any step, the queue leaves a tested target, and no entry is lost or landed twice.",
)
def test_a_runner_killed_at_any_step_leaves_a_tested_target_and_loses_nothing(
    testbed: CrashTestbed, tmp_path: Path
) -> None:
    expected = fill(testbed)
    saved = FolderBackup(tmp_path / "testbed", tmp_path / "saved")
    every = list(list_steps(testbed.repository))
    testbed.check_end(expected)
    assert {name for name, _ in every} >= {
        *("testing", "merged", "checking", "tested", "written", "moved", "forwarded", "landed", "settled"),
        "bounced",
    }
    for step, count in every if KILLS >= 100 else [(step, count) for step, count in every if count == 1]:
        saved.restore()
        testbed.tips.clear()
        killed = wait_for_exit(fork(lambda at=(step, count): run_queue(testbed.repository, kill_at(*at))))
        assert killed == -signal.SIGKILL, f"{step} {count}: {killed}"
        testbed.check_target()
        assert run_queue(testbed.repository) == "", f"after {step} {count}"
        testbed.check_end(expected)


def test_landing_again_ends_what_a_killed_runner_began(testbed: CrashTestbed) -> None:
    repo = testbed.open()
    landing = testbed.submit(repo, "one", {"one.txt": "one\n"})
    repo.close()
    assert wait_for_exit(fork(lambda: run_queue(testbed.repository, kill_at("moved", 1)))) < 0
    assert not (testbed.repository / "one.txt").exists()

    shell = Shell(testbed.repository)
    answer = shell.run_json("land", "one", "--wait", "--as", "author-of-one")

    assert (answer["landing"]["id"], answer["landing"]["state"]) == (landing.id, "landed")
    assert (testbed.repository / "one.txt").exists()


def test_a_runner_killed_while_it_recovers_leaves_nothing_between(
    testbed: CrashTestbed, tmp_path: Path
) -> None:
    expected = fill(testbed)
    saved = FolderBackup(tmp_path / "testbed", tmp_path / "saved")
    for first in ("written", "moved"):
        for second in ("forwarded", "recovered"):
            saved.restore()
            testbed.tips.clear()
            assert wait_for_exit(fork(lambda at=first: run_queue(testbed.repository, kill_at(at, 1)))) < 0
            wait_for_exit(fork(lambda at=second: run_queue(testbed.repository, kill_at(at, 1))))
            testbed.check_target()
            assert run_queue(testbed.repository) == ""
            testbed.check_end(expected)


def test_a_runner_killed_at_random_moments_leaves_a_tested_target_and_loses_nothing(
    testbed: CrashTestbed, tmp_path: Path
) -> None:
    seed = int(os.environ.get("LANDLANE_SEED", "") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    expected = fill(testbed)
    saved = FolderBackup(tmp_path / "testbed", tmp_path / "saved")
    begun = time.monotonic()
    assert wait_for_exit(fork(lambda: run_queue(testbed.repository))) == 0
    length = time.monotonic() - begun
    testbed.check_end(expected)
    kills = 0
    while kills < KILLS:
        saved.restore()
        testbed.tips.clear()
        for _ in range(chance.randint(1, 4)):
            kills += _kill_at_random(testbed, chance, length)
            testbed.check_target()
        assert run_queue(testbed.repository) == "", f"seed {seed}"
        testbed.check_end(expected)


def _kill_at_random(testbed: CrashTestbed, chance: random.Random, length: float) -> int:
    """Kill a runner, alone or with all it runs, some time after its start; tells whether it still ran."""
    pid = fork(lambda: run_queue(testbed.repository))
    kill = os.killpg if chance.random() < 0.5 else os.kill
    await_moment(chance.uniform(0, length * 1.1))
    try:
        kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # it has not made its own group yet; or it has ended, and does not mind
    return int(wait_for_exit(pid) == -signal.SIGKILL)


def test_a_check_that_outlives_its_runner_does_not_meddle_with_the_next(
    tmp_path: Path, repository: Path
) -> None:
    gate, begun = tmp_path / "gate", tmp_path / "begun"
    os.mkfifo(gate)
    testbed = CrashTestbed(
        repository, first=f"if mkdir {begun}; then read line < {gate}; echo late > README.md; fi"
    )
    repo = testbed.open()
    landing = testbed.submit(repo, "one", {"one.txt": "one\n"})
    repo.close()
    pid = fork(lambda: run_queue(testbed.repository))
    wait_until(begun.exists)
    os.kill(pid, signal.SIGKILL)
    wait_for_exit(pid)
    assert run_queue(testbed.repository) == ""
    testbed.check_end({landing.id: "landed"})
    with pytest.raises(OSError, match="No such device"):  # nobody waits there any more
        os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))


@pytest.mark.promise(
    "landing.overtaken-writes-nothing",
    "A queue runner that was paused past its lease writes nothing when it resumes.",
)
def test_a_stopped_runner_that_wakes_up_writes_nothing(testbed: CrashTestbed, tmp_path: Path) -> None:
    expected = fill(testbed)
    saved = FolderBackup(tmp_path / "testbed", tmp_path / "saved")
    for step in ("testing", "tested", "written", "moved", "landed") if KILLS >= 100 else ("tested", "moved"):
        saved.restore()
        testbed.tips.clear()
        stop = kill_at(step, 1, signal.SIGSTOP)
        pid = fork(lambda stop=stop: run_queue(testbed.repository, stop, lease_ms=LEASE_MS))
        try:
            wait_until(lambda pid=pid: is_stopped(pid))
            wait_until(lambda: run_queue(testbed.repository) != "busy")
            testbed.check_end(expected)
            tip, count = testbed.tip, len(_entries(testbed))
        finally:
            os.kill(pid, signal.SIGCONT)
        assert wait_for_exit(pid) == 1, step  # overtaken, and it says so
        assert testbed.tip == tip
        assert len(_entries(testbed)) == count
        testbed.check_end(expected)


def test_stopped_runner_cannot_land_an_ejected_entry(testbed: CrashTestbed) -> None:
    testbed.branch("one", {"one.txt": "one\n"})
    repo = testbed.open()
    ann = join(repo, "ann")
    claim(repo, ann, "one.txt")
    landing = submit(repo, ann, "one")
    repo.close()
    stop = kill_at("written", 1, signal.SIGSTOP)
    pid = fork(lambda: run_queue(testbed.repository, stop, lease_ms=LEASE_MS))
    try:
        wait_until(lambda: is_stopped(pid))
        # Whoever takes over finds the move, sees that it was not made, and is killed before it begins anew.
        wait_until(
            lambda: wait_for_exit(fork(lambda: run_queue(testbed.repository, kill_at("recovered", 1)))) < 0
        )
        repo = testbed.open()
        eject_entry(repo.require_git(), ann, landing.id, "wrong branch")
        repo.close()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert wait_for_exit(pid) == 1
    assert testbed.tip == testbed.start
    testbed.check_end({landing.id: "ejected"})


def test_land_killed_around_its_pin_can_be_said_again(testbed: CrashTestbed) -> None:
    repo = testbed.open()
    session = join(repo, "ann")
    testbed.branch("one", {"one.txt": "one\n"})
    claim(repo, session, "one.txt")
    repo.close()

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def killed_in(name: str) -> int:
        def work() -> None:
            child = testbed.open()
            setattr(submitting, name, die)
            submit(child, session, "one")

        return wait_for_exit(fork(work))

    assert killed_in("enqueue") == -signal.SIGKILL
    assert git_line(testbed.repository, "for-each-ref", "refs/landlane/landing") != ""
    repo = testbed.open()
    assert list_landings(repo, ()) == []
    repo.close()
    assert run_queue(testbed.repository) == ""
    assert git_line(testbed.repository, "for-each-ref", "refs/landlane/landing") == ""
    repo = testbed.open()
    landing = submit(repo, session, "one")
    repo.close()
    assert run_queue(testbed.repository) == ""
    testbed.check_end({landing.id: "landed"})


def test_land_killed_at_random_moments_enters_a_branch_once(testbed: CrashTestbed) -> None:
    seed = int(os.environ.get("LANDLANE_SEED", "") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    repo = testbed.open()
    ann = join(repo, "ann")
    claim(repo, ann, "one.txt")
    repo.close()
    testbed.branch("one", {"one.txt": "one\n"})

    def submit_in_child() -> None:
        child = testbed.open()
        submit(child, ann, "one")
        child.close()

    for _ in range(KILLS):
        pid = fork(submit_in_child)
        await_moment(chance.uniform(0, 0.15))
        os.kill(pid, signal.SIGKILL)
        wait_for_exit(pid)
    repo = testbed.open()
    landing = submit(repo, ann, "one")
    repo.close()
    assert run_queue(testbed.repository) == ""
    testbed.check_end({landing.id: "landed"})


def await_moment(seconds: float) -> None:
    """Let a child go on for a moment of chance."""
    end_at = time.monotonic() + seconds
    while time.monotonic() < end_at:
        time.sleep(0.001)


@pytest.mark.parametrize("name", ["refs/heads/main", "packed-refs", "index"])
def test_lock_left_by_a_killed_git_is_removed(testbed: CrashTestbed, name: str) -> None:
    repo = testbed.open()
    landing = testbed.submit(repo, "one", {"one.txt": "one\n"})
    repo.close()
    lock = testbed.repository / ".git" / f"{name}.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    assert run_queue(testbed.repository) == ""
    testbed.check_end({landing.id: "landed"})


def test_a_pin_that_was_lost_is_made_again(testbed: CrashTestbed) -> None:
    repo = testbed.open()
    landing = testbed.submit(repo, "one", {"one.txt": "one\n"})
    git_line(testbed.repository, "update-ref", "-d", submitted_ref(landing.head))
    settling.repair_submitted_refs(
        repo.require_git(), settling.find_target(repo.require_git().home, repo.settings)
    )
    assert list_submitted(repo.require_git().home) == [landing.head]
    repo.close()


@pytest.mark.parametrize(
    "step", ["closing", "saved", "renamed", "forgotten", "removed", "unpinned", "closed"]
)
def test_a_runner_killed_while_it_closes_a_workspace_is_made_up_for(testbed: CrashTestbed, step: str) -> None:
    repo = testbed.open()
    landing = testbed.submit_task(repo, "two", {"two.txt": "two\n"})
    repo.close()

    def work() -> None:
        close = functools.partial(settling.close_workspace, on_step=kill_at(step, 1))
        setattr(settling, "close_workspace", close)  # noqa: B010 - in a child that is about to die
        run_queue(testbed.repository)

    assert wait_for_exit(fork(work)) == -signal.SIGKILL
    assert run_queue(testbed.repository) == ""
    repo = testbed.open()
    assert get_landing(repo, landing.id).is_settled
    repo.close()
    testbed.check_end({landing.id: "landed"})


def _entries(testbed: CrashTestbed) -> list[str]:
    repo = testbed.open()
    try:
        return [entry.hash for entry in read_entries(repo)]
    finally:
        repo.close()
