"""Incidents that were reported of other tools, each as a test with its numbers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from landlane.exec import sandboxed_run
from landlane.protocol.worker.messages import Conversation, Heartbeat, WorkAssignment, WorkerLimits
from landlane.sessions.join import join, leave, live_sessions
from landlane.sessions.leases import renew_session
from landlane.state.slot_kinds import SlotTaken
from landlane.state.slots import make_slot_request, take_slot
from landlane.tasks.model import Attempt
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import open_test_repository
from landlane.values import as_dict, replace
from landlane.workers import attempt_resources, finish_attempt, supervisor
from landlane.workers.recover import is_orphaned
from tests.support.processes import fork, stop_outside_transactions, wait_for_exit
from tests.support.project import let_time_pass
from tests.support.waiting import wait_until
from tests.workers.running import WorkerTestbed, work_on

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.soak]

MINUTE = 60_000
LEASE_MS = 10_000

STEPS = (
    *(
        "join_under_free_name",
        "begin_attempt",
        "take_task",
        "begin_run",
        "open_workspace",
        "prepare_client_homes",
        "SandboxedChild",
    ),
    *("run_worker", "fetch_clone_branch", "commit_returned", "complete_task", "submit_branch"),
    *("end_session", "remove_scratch"),
)


def work_and_die(works: WorkerTestbed, task: str, name: str, when: str) -> None:
    """Supervise a task, and be killed before or after one step."""
    module = next(
        one for one in (supervisor, finish_attempt, attempt_resources, sandboxed_run) if hasattr(one, name)
    )
    original = getattr(module, name)

    def step(*words: object, **more: object) -> object:
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        original(*words, **more)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    setattr(module, name, step)
    work_on(works, task, lambda _: None)


def test_t23_ports_stay_distinct_while_checkouts_come_and_go(repository: Path) -> None:
    """17 are made, 8 removed, 8 made again, and on to 35: no two share a port, and each can be bound."""
    repo = open_test_repository(repository, str(repository.parent / "store.db"))
    held: dict[str, int] = {}

    def make(name: str) -> None:
        session = join(repo, name).session
        taken = take_slot(repo, session, make_slot_request(repo, "port", name=name))
        assert isinstance(taken, SlotTaken)
        held[name] = int(taken.slot.place)

    for number in range(17):
        make(f"tree{number}")
    for number in range(8):
        leave(repo, join(repo, f"tree{number}").session)
        del held[f"tree{number}"]
    for number in range(17, 44):
        make(f"tree{number}")

    assert len(held) == len(set(held.values())) == 36
    for port in held.values():
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))


def test_t28_a_worker_that_shows_life_is_never_ended(repository: Path) -> None:
    """48 minutes of work, then 90 in one silent command while heartbeats flow."""
    assignment = WorkAssignment(
        assignment="T1-1", task="T1", attempt=1, title="Long", folder="/", heartbeat_seconds=60
    )
    talk = Conversation().receive(assignment, 0)
    clock = FakeClock()
    repo = open_test_repository(repository, str(repository.parent / "store.db"), clock=clock)
    session = join(repo, "ann").session
    for second in range(0, (48 + 90) * 60, 50):
        assert isinstance(talk, Conversation)
        now = second * 1000
        assert talk.check_limits(now, WorkerLimits()) is None
        talk = talk.receive(Heartbeat(assignment="T1-1", doing="one long command"), now)
        clock.advance(50_000)
        renew_session(repo.store, session)

    assert [one.id for one in live_sessions(repo)] == [session.id]
    assert isinstance(talk, Conversation)
    silent = talk.check_limits((48 + 90) * MINUTE + 61_000, WorkerLimits())
    assert silent is not None
    assert silent.code == "silent"


@pytest.mark.sandbox
def test_t29_the_task_of_a_killed_owner_is_taken_by_an_idle_pool(works: WorkerTestbed) -> None:
    task = works.add(
        "Be left",
        "a.txt",
        script={"seconds": 60},
        later={2: {"append": {"a.txt": "by another\n"}}},
    )
    first = works.begin("--workers", "1")
    works.wait_for_worker()
    idle = works.begin("--forever", "--until-empty")

    for pid in [*works.supervisors(first), first.pid]:
        os.kill(pid, signal.SIGKILL)
    first.communicate(timeout=30)
    idle.communicate(timeout=60)

    assert works.states()[task] == "done"
    assert works.text("a.txt") == "by another"
    works.check_clean()


@pytest.mark.slow
def test_t30_a_sleeper_that_wakes_up_writes_nothing(repository: Path) -> None:
    """A is stopped until its lease is over; B takes the task and lands it; A goes on, and is refused."""
    works = WorkerTestbed(repository, more=f'[sessions]\nlease = "{LEASE_MS}ms"\n')
    task = works.add(
        "Sleep over it",
        "a.txt",
        script={"seconds": 5, "append": {"a.txt": "of the sleeper\n"}},
        later={2: {"append": {"a.txt": "of the other\n"}}},
    )
    first = works.begin("--workers", "1")
    works.wait_for_worker()
    asleep = [*works.supervisors(first), *works.workers_running(), first.pid]
    stop_outside_transactions(str(works.root / ".git" / "landlane" / "store.db"), asleep)
    try:
        repo = open_test_repository(works.root)
        let_time_pass(repo.store, LEASE_MS)
        repo.store.close()
        wait_until(lambda: works.states()[task] == "ready", seconds=60)
        works.run()
        tip = works.git("rev-parse", "main")
    finally:
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
    first.communicate(timeout=60)

    assert works.text("a.txt") == "of the other"
    assert works.git("rev-parse", "main") == tip
    assert works.task(task)["attempt"] == 2
    works.check_clean()


def test_t31_a_reused_pid_is_not_the_supervisor(repository: Path) -> None:
    repo = open_test_repository(repository, str(repository.parent / "store.db"))
    here = repo.processes.current()
    attempt = Attempt(
        id="A1",
        task="T1",
        attempt=1,
        lineage="T1",
        agent="a",
        role="",
        client="command",
        session=join(repo, "a").session.id,
        machine=repo.processes.machine,
        keeper=as_dict(here),
        started_at=0,
    )

    assert not is_orphaned(repo, attempt)
    assert is_orphaned(repo, replace(attempt, keeper={**as_dict(here), "started": here.started - 1}))
    before = replace(attempt, keeper={**as_dict(here), "boot_id": "before"})
    assert is_orphaned(repo, before)
    now = repo.store.wall_of(repo.store.view(lambda snapshot: snapshot.now))
    assert not is_orphaned(repo, replace(before, seen_at=now)), "a machine of the same image is at work"
    assert not is_orphaned(repo, replace(attempt, machine="another"))


@pytest.mark.timeout(240)
@pytest.mark.sandbox
def test_t36_killed_between_any_two_steps_the_next_run_converges(repository: Path) -> None:
    works = WorkerTestbed(repository, workers=len(STEPS))  # an attempt counts until it is cleaned up
    tasks: dict[str, str] = {}
    dying: list[int] = []
    ends: list[int] = []
    for number, name in enumerate(STEPS):
        when = "before" if number % 2 else "after"
        task = works.edit(f"Die {when} {name}", f"{name}.txt")
        tasks[task] = name
        dying.append(fork(lambda at=(task, name, when): work_and_die(works, *at)))
        if len(dying) == 4 or name == STEPS[-1]:
            ends += [wait_for_exit(pid) for pid in dying]
            dying.clear()
    assert dict(zip(STEPS, ends, strict=True)) == dict.fromkeys(STEPS, -signal.SIGKILL)

    ended = works.shell.run("run", "--json", limit_seconds=200)

    assert ended.exit == 0, ended
    assert set(works.states().values()) == {"done"}
    for name in STEPS:
        assert works.text(f"{name}.txt").count(name) == 1, name
    works.check_clean()


@pytest.mark.sandbox
def test_t43_a_kill_by_pattern_reaches_no_sibling(works: WorkerTestbed) -> None:
    hunted = f"sleep 1.{os.getpid() % 1000:03}1"
    sibling = works.add("Be hunted", "a.txt", script={"run": f"{hunted}; echo a > a.txt"})
    # The pattern does not match the hunter's own line.
    hunt = f"for i in 1 2 3; do pkill -9 -f '[s]{hunted[1:]}'; sleep 0.2; done; echo b > b.txt"
    works.add("Hunt", "b.txt", script={"run": hunt})
    daemon = subprocess.Popen(["sleep", "60"])
    try:
        works.run()
        assert daemon.poll() is None
    finally:
        daemon.kill()
        daemon.wait()

    assert works.task(sibling)["attempt"] == 1
    assert works.text("a.txt") == "a"
    assert works.text("b.txt") == "b"


@pytest.mark.sandbox
def test_work_is_never_begun_twice_by_a_crowd(works: WorkerTestbed) -> None:
    """Eight supervisors ask for one task in the same instant."""
    task = works.edit("Only once", "a.txt", seconds=0.5)
    crowd = [fork(lambda: work_on(works, task, lambda _: None)) for _ in range(8)]
    assert [wait_for_exit(pid) for pid in crowd] == [0] * 8

    assert works.task(task)["attempt"] == 1
    works.run()
    assert works.text("a.txt") == "Only once"
    works.check_clean()
