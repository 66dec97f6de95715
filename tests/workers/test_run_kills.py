"""Killing any part of a run: tasks end once, nothing is lost, nothing is left, whoever comes next goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.waiting import wait_until
from tests.workers.running import WorkerTestbed, kill_all

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.sandbox]

# Ten minutes of it are asked for with LANDLANE_RUN_KILLS=600; by default it takes a few seconds.
SECONDS = float(os.environ.get("LANDLANE_RUN_KILLS", "3"))
LAST_SECONDS = 120 + SECONDS  # for what the kills left to do
SEED = int(os.environ.get("LANDLANE_SEED", "11"))


def test_a_new_orchestrator_waits_for_the_attempts_of_a_killed_one(works: WorkerTestbed) -> None:
    task = works.edit("Take a while", "a.txt", seconds=2)
    process = works.begin()
    works.wait_for_worker()

    works.kill(process)
    answer = works.run()

    assert answer["summary"]["done"] == [task]
    assert works.task(task)["attempt"] == 1
    works.check_clean()


def test_a_killed_supervisor_takes_its_worker_along_and_the_task_is_tried_again(works: WorkerTestbed) -> None:
    task = works.add(
        "Be killed once",
        "a.txt",
        script={"seconds": 60},
        later={2: {"append": {"a.txt": "second\n"}}},
    )
    process = works.begin()
    works.wait_for_worker()

    os.kill(works.supervisors(process)[0], signal.SIGKILL)
    process.communicate(timeout=60)

    assert process.returncode == 0
    assert works.text("a.txt") == "second"
    assert works.task(task)["attempt"] == 2
    works.check_clean()


def test_a_killed_helper_is_replaced(works: WorkerTestbed) -> None:
    tasks = [works.edit(f"Say {number}", f"{number}.txt", seconds=0.5) for number in range(3)]
    process = works.begin("--workers", "1")
    works.wait_for_worker()

    os.kill(works.helpers(process)[0], signal.SIGKILL)
    process.communicate(timeout=60)

    assert process.returncode == 0
    assert {works.task(task)["attempt"] for task in tasks} == {1}
    works.check_clean()


def test_everything_killed_at_once_is_cleared_up_by_the_next(works: WorkerTestbed) -> None:
    task = works.add(
        "Be killed with all",
        "a.txt",
        script={"run": "echo half > a.txt; sleep 60"},
        later={2: {"append": {"a.txt": "second\n"}}},
    )
    process = works.begin()
    works.wait_for_worker()
    supervisors = works.supervisors(process)

    os.kill(process.pid, signal.SIGSTOP)  # so that it clears nothing up meanwhile
    for pid in [*supervisors, process.pid]:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=30)
    works.run()

    assert works.text("a.txt") == "second"
    assert works.task(task)["state"] == "done"
    works.check_clean()


def test_two_orchestrators_share_one_queue(works: WorkerTestbed) -> None:
    tasks = [works.edit(f"Say {number}", f"{number}.txt", seconds=0.3) for number in range(6)]

    both = [works.begin("--workers", "2"), works.begin("--workers", "2")]
    for one in both:
        one.communicate(timeout=90)

    # Who ends first may leave what the other has in hand.
    assert 0 in {one.returncode for one in both}
    assert {works.task(task)["attempt"] for task in tasks} == {1}
    assert set(works.states().values()) == {"done"}
    works.check_clean()


def test_a_worker_of_another_pid_is_not_mistaken(works: WorkerTestbed) -> None:
    """A worker is identified by pid and start time: a process that reuses its pid is left alone."""
    task = works.edit("Take long", "a.txt", seconds=60)
    process = works.begin()
    works.wait_for_worker()
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        kill_all([*works.supervisors(process), process.pid])
        process.communicate(timeout=30)
        works.shell.run("doctor", "--fix")
        wait_until(lambda: works.workers_running() == [])

        assert bystander.poll() is None
        wait_until(lambda: works.states()[task] == "ready")
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS * 3 + 300)
def test_killed_at_random_every_task_ends_once_and_the_target_is_always_green(works: WorkerTestbed) -> None:
    chance = random.Random(SEED)
    count = max(6, round(SECONDS))
    tasks = [
        works.edit(f"Say {number}", f"{number % 8}.txt", seconds=chance.uniform(0.05, 0.5))
        for number in range(count)
    ]
    deadline = time.monotonic() + SECONDS
    process = works.begin()
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(chance.uniform(0.1, 0.9))
        victim = chance.choice(["orchestrator", "supervisor", "worker", "helper"])
        _kill_one(works, process, victim, chance)
        if process.poll() is not None:
            process.communicate(timeout=30)
            process = works.begin()
    if process.poll() is None:
        process.communicate(timeout=LAST_SECONDS)
    else:
        process.communicate(timeout=30)

    last = works.shell.run("run", "--json", limit_seconds=LAST_SECONDS)
    for task in [one for one, state in works.states().items() if state in ("waiting_for_person", "dead")]:
        assert works.task(task)["why"], f"{task} ended without a reason (seed {SEED})"
    done = [task for task in tasks if works.states()[task] == "done"]
    lines = [
        line
        for number in range(8)
        if works.git("ls-tree", "--name-only", "main", f"{number}.txt")
        for line in works.text(f"{number}.txt").splitlines()
    ]
    assert sorted(lines) == sorted(works.task(task)["title"] for task in done)
    assert set(works.states().values()) <= {"done", "dead", "waiting_for_person"}, last
    works.check_clean()


def _kill_one(
    works: WorkerTestbed, process: subprocess.Popen[str], victim: str, chance: random.Random
) -> None:
    try:
        if victim == "orchestrator":
            os.kill(process.pid, signal.SIGKILL)
            return
        find = {"supervisor": works.supervisors, "helper": works.helpers}.get(victim)
        pids = find(process) if find else works.workers_running()
        if pids:
            os.kill(chance.choice(pids), signal.SIGKILL)
    except (OSError, ValueError):
        return  # it ended by itself


def test_no_scratch_folder_is_left(works: WorkerTestbed, tmp_path: Path) -> None:
    shell = works.shell.with_env(TMPDIR=str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    works.edit("Say it", "a.txt")

    ended = shell.run("run", "--json")

    assert ended.exit == 0, ended
    assert [one.name for one in (tmp_path / "tmp").iterdir()] == []
