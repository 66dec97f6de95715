"""Two clones of one remote as two machines, their state in PostgreSQL: both take tasks, claim and land."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.clock import read_boot_id
from landlane.landing.records import list_landings
from landlane.platform import process as processes
from landlane.workspaces.records import list_workspaces
from tests.support.git import git_line
from tests.support.landing_crashes import CrashTestbed, kill_at, leftover_refs, run_queue
from tests.support.processes import fork, wait_for_exit
from tests.support.shell import Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from landlane.landing.model import Landing
    from landlane.testing.postgres_server import PostgresServer

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres, pytest.mark.timeout(300), pytest.mark.soak]

ID = "6f3d1b52-0b56-4b0e-9d0e-3f1f5f2f6a10"
KILLS = int(os.environ.get("LANDLANE_LANDING_KILLS", "2"))  # at random moments; 100 and more in longer runs
LEASE_MS = 900
# Python imports this first: on another machine the name and the run of the machine are others.
ELSEWHERE = """
import os, landlane.clock as clock
machine, uname, boot_id = os.environ["MACHINE"], os.uname(), clock.read_boot_id()
os.uname = lambda: os.uname_result((uname.sysname, machine, *uname[2:]))
clock.read_boot_id = lambda: f"{boot_id}-{machine}"
"""


class Machine(CrashTestbed):
    """A clone that counts as a machine of its own while it is the one at work."""

    name = ""

    def __init__(self, repository: Path, tested: Path, start: str) -> None:  # what is there is not made anew
        self.repository = repository
        self.tested_file = tested
        self.tips = []
        self.start = start


@pytest.fixture
def machines(
    repository: Path, tmp_path: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> tuple[Machine, Machine]:
    monkeypatch.setenv("LANDLANE_STORE", postgres_server.create_database())
    seed = CrashTestbed(repository, remote=tmp_path / "remote.git", more=f'\n[repository]\nid = "{ID}"\n')
    made: list[Machine] = []
    for name in ("north", "south"):
        git_line(tmp_path, "clone", "--quiet", str(tmp_path / "remote.git"), str(tmp_path / name / "shop"))
        made.append(Machine(tmp_path / name / "shop", seed.tested_file, seed.start))
        made[-1].name = name
    return made[0], made[1]


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Be on a machine from now on."""
    boot_id, uname = read_boot_id(), os.uname()

    def go_to(machine: Machine) -> Machine:
        named = os.uname_result((uname.sysname, machine.name, *uname[2:]))
        monkeypatch.setattr(os, "uname", lambda: named)
        monkeypatch.setattr(processes, "read_boot_id", lambda: f"{boot_id}-{machine.name}")
        return machine

    return go_to


def enter(machine: Machine, name: str) -> Landing:
    repo = machine.open()
    try:
        return machine.submit_task(repo, name, {f"{name}.txt": name})
    finally:
        repo.close()


def workspaces(machine: Machine) -> list[str]:
    repo = machine.open()
    try:
        return [one.branch for one in list_workspaces(repo)]
    finally:
        repo.close()


def check_history(machine: Machine, remote: Path) -> None:
    """The remote's branch is exactly what the queue says, in its order."""
    repo = machine.open()
    landed = [one for one in list_landings(repo, ()) if one.state == "landed"]
    repo.close()
    lines = git_line(remote, "log", "--first-parent", "--reverse", "--format=%H %P", f"{machine.start}..main")
    merged = [(line.split()[0], line.split()[2]) for line in lines.splitlines()]
    by_commit = {one.commit: one.head for one in landed}
    assert merged == [(commit, by_commit[commit]) for commit, _ in merged]
    assert len(merged) == len(landed)
    assert git_line(remote, "rev-parse", "main^{tree}") in machine.tested


def test_one_machine_lands_a_branch_submitted_on_another(
    machines: tuple[Machine, Machine], stand: Any, tmp_path: Path
) -> None:
    north, south = machines
    ours = enter(stand(north), "ours")
    theirs = enter(stand(south), "theirs")
    assert git_line(tmp_path / "remote.git", "for-each-ref", "refs/landlane/landing").count("\n") == 1
    assert run_queue(south.repository) == ""
    assert [south.reload(one).state for one in (ours, theirs)] == ["landed", "landed"]
    check_history(south, tmp_path / "remote.git")
    # What lies on the other machine is seen to there, when it is at work again.
    assert [south.reload(one).is_settled for one in (ours, theirs)] == [False, True]
    assert workspaces(south) == [ours.branch]
    assert Path(str(north.repository) + ".workspaces").joinpath(".").exists()
    stand(north)
    assert run_queue(north.repository) == ""
    assert north.reload(ours).is_settled
    assert workspaces(north) == []
    for machine in (north, south):
        assert leftover_refs(machine.repository) == []
        tip = git_line(tmp_path / "remote.git", "rev-parse", "main")
        assert git_line(machine.repository, "rev-parse", "HEAD") == tip
        assert git_line(machine.repository, "status", "--porcelain") == ""
        branches = git_line(machine.repository, "branch", "--list", "landlane/*")
        assert branches == ""
    assert leftover_refs(tmp_path / "remote.git") == []


def test_workspace_command_closes_workspaces_whose_branch_landed_elsewhere(
    machines: tuple[Machine, Machine], stand: Any, tmp_path: Path
) -> None:
    north, south = machines
    ours = enter(stand(north), "ours")
    stand(south)
    assert run_queue(south.repository) == ""
    shell = at(north, tmp_path)
    assert shell.run_json("workspace", "list")["workspaces"] == []
    assert git_line(north.repository, "branch", "--list", ours.branch) == ""
    assert git_line(north.repository, "rev-parse", "HEAD") == git_line(
        tmp_path / "remote.git", "rev-parse", "main"
    )


def test_branch_rejected_on_one_machine_is_kept_on_the_other(
    machines: tuple[Machine, Machine], stand: Any, tmp_path: Path
) -> None:
    north, south = machines
    stand(north)
    repo = north.open()
    red = north.submit(repo, "red", {"red.txt": "red"})
    repo.close()
    git_line(north.repository, "branch", "-D", "red")
    stand(south)
    assert run_queue(south.repository) == ""
    assert south.reload(red).state == "bounced"
    assert git_line(south.repository, "branch", "--list", "red") == ""
    assert leftover_refs(tmp_path / "remote.git") != []  # until its author's clone has it again
    stand(north)
    assert run_queue(north.repository) == ""
    assert git_line(north.repository, "rev-parse", "red") == red.head
    assert leftover_refs(tmp_path / "remote.git") == []


@pytest.mark.parametrize("step", ["written", "moved"])
def test_one_machine_continues_after_the_other_died(
    machines: tuple[Machine, Machine], stand: Any, tmp_path: Path, step: str
) -> None:
    north, south = machines
    entries = [enter(stand(north), "ours"), enter(stand(south), "theirs")]
    stand(north)
    pid = fork(lambda: run_queue(north.repository, kill_at(step, 1), lease_ms=LEASE_MS))
    assert wait_for_exit(pid) == -signal.SIGKILL
    stand(south)
    wait_until(lambda: run_queue(south.repository) != "busy")
    assert [south.reload(one).state for one in entries] == ["landed", "landed"]
    check_history(south, tmp_path / "remote.git")
    stand(north)
    assert run_queue(north.repository) == ""
    assert workspaces(north) == []
    assert leftover_refs(tmp_path / "remote.git") == leftover_refs(north.repository) == []
    assert git_line(north.repository, "rev-parse", "HEAD") == git_line(
        tmp_path / "remote.git", "rev-parse", "main"
    )


def test_target_agrees_with_the_queue_after_runners_are_killed_on_both_machines(
    machines: tuple[Machine, Machine], stand: Any, tmp_path: Path
) -> None:
    seed = int(os.environ.get("LANDLANE_SEED", "") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    kills = number = 0
    while kills < KILLS:
        number += 1
        entries = [enter(stand(machine), f"{machine.name}{number}") for machine in machines]
        pids: list[int] = []
        for machine in machines:
            folder = stand(machine).repository
            pids.append(fork(lambda at=folder: run_queue(at, lease_ms=LEASE_MS)))
        for pid in pids:
            end_at = time.monotonic() + chance.uniform(0, 0.6)
            wait_until(lambda at=end_at: time.monotonic() > at)
            os.kill(pid, signal.SIGKILL)
            kills += wait_for_exit(pid) == -signal.SIGKILL
        stand(machines[number % 2])
        folder = machines[number % 2].repository
        wait_until(lambda at=folder: run_queue(at) != "busy")
        assert {machines[0].reload(one).state for one in entries} == {"landed"}, f"seed {seed}"
        check_history(machines[0], tmp_path / "remote.git")
    for machine in machines:
        assert run_queue(stand(machine).repository) == ""
        assert leftover_refs(machine.repository) == []
        tip = git_line(tmp_path / "remote.git", "rev-parse", "main")
        assert git_line(machine.repository, "rev-parse", "HEAD") == tip
    assert workspaces(machines[0]) == []
    assert leftover_refs(tmp_path / "remote.git") == []


def at(machine: Machine, tmp_path: Path) -> Shell:
    """A shell on a machine: its name and its run of the system are its own."""
    folder = tmp_path / "elsewhere"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(ELSEWHERE, encoding="utf-8")
    return Shell(machine.repository, {"PYTHONPATH": str(folder), "MACHINE": machine.name})


@pytest.mark.promise(
    "landing.two-machines",
    "When two machines take tasks, claim and land at once, the remote matches the queue.",
)
def test_both_machines_take_tasks_claim_and_land_at_once(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    shells = {machine.name: at(machine, tmp_path) for machine in machines}
    for number in range(4):
        shells["north"].run_json("task", "add", f"Write part {number}", "--path", f"part{number}.txt")
    failures: list[BaseException] = []
    done: dict[str, list[str]] = {"north": [], "south": []}

    def work(name: str) -> None:
        try:
            while (task := _do_next(shells[name], name)) is not None:
                done[name].append(task)
        except BaseException as error:  # noqa: BLE001 - told by the test itself
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in shells]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert sorted(done["north"] + done["south"]) == ["T1", "T2", "T3", "T4"]
    assert all(done.values()), done
    check_history(machines[0], tmp_path / "remote.git")
    # What landed through the other machine's runner is cleaned up when its own machine looks next.
    for machine in machines:
        shells[machine.name].run_json("workspace", "list")
    for machine in machines:
        assert shells[machine.name].run_json("workspace", "list")["workspaces"] == []
    tasks = shells["south"].run_json("task", "list", "--all")["tasks"]
    assert {task["state"] for task in tasks} == {"done"}
    assert leftover_refs(tmp_path / "remote.git") == []


def _do_next(shell: Shell, name: str) -> str | None:
    """Take a task, do it in a workspace of its own, and land it; nothing when none is left."""
    ended = shell.run("next", "--as", name, "--json")
    if ended.exit:
        return None
    task = ended.json()["task"]["id"]
    place = shell.run_json("workspace", "open", task, "--as", name)["workspace"]["path"]
    inside = shell.at(place)
    number = int(task[1:]) - 1
    Path(place, f"part{number}.txt").write_text(name, encoding="utf-8")
    inside.git("add", ".")
    inside.git("commit", "--quiet", "-m", f"Part {number}")
    landed = shell.run_json("land", f"landlane/{task}-1/work", "--as", name, "--wait")["landing"]
    assert landed["state"] == "landed", landed
    return task


def test_machine_is_identified_by_its_name_and_boot(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    script = "from landlane.platform.process import MachineProcesses as M; print(M().machine, M().boot_id)"
    said = [at(one, tmp_path).run_program(sys.executable, "-c", script).out.split() for one in machines]
    assert said[0][0].startswith("north-")
    assert said[1][0].startswith("south-")
    assert said[0][1] != said[1][1]
    assert os.uname().nodename not in ("north", "south")
