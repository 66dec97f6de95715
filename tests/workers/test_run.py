"""`run` as a user runs it: tasks are taken, worked on by real processes in sandboxes, and landed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from tests.workers.running import LIMIT_SECONDS, WorkerTestbed, interrupt, stop

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.sandbox]

# In a worker's checkout: shows that it is there, and goes on when it is told to.
UNTIL_LET_GO = "touch here; for i in $(seq 1200); do test -e go && break; sleep 0.05; done; rm here go"


def test_tasks_are_worked_on_and_land(works: WorkerTestbed) -> None:
    first = works.edit("Say one", "one.txt")
    second = works.edit("Say two", "two.txt", after=first)

    answer = works.run()

    assert answer["summary"]["done"] == [first, second]
    assert works.text("one.txt") == "Say one"
    assert works.text("two.txt") == "Say two"
    assert f"landlane/{second}-1/work" in works.git("log", "-1", "--format=%s", "main")
    works.check_clean()


def test_no_worker_starts_while_its_path_is_about_to_land(works: WorkerTestbed) -> None:
    """Until it has landed the entry holds the path: who comes next waits without a try, and begins then."""
    text = (works.root / "landlane.toml").read_text().replace('"test ! -e RED"', '"sleep 1"')
    (works.root / "landlane.toml").write_text(text)
    works.git("commit", "--quiet", "--all", "-m", "Tests that take a while")
    tasks = [works.edit(f"Say {number}", "one.txt") for number in range(3)]

    answer = works.run()

    entries = works.shell.run_json("log")["entries"]
    joined = [one["agent"] for one in entries if one["kind"] == "session.joined"]
    assert sorted(answer["summary"]["done"]) == sorted(tasks)
    assert len([agent for agent in joined if agent.startswith("scripted-")]) == 3
    assert sorted(works.text("one.txt").splitlines()) == ["Say 0", "Say 1", "Say 2"]


def test_a_run_ends_when_its_paths_wait_for_an_approval(works: WorkerTestbed) -> None:
    text = (works.root / "landlane.toml").read_text().replace("[run]", 'gate = ["one.txt"]\n[run]')
    (works.root / "landlane.toml").write_text(text)
    works.git("commit", "--quiet", "--all", "-m", "Ask before it lands")
    first, second = works.edit("Say 1", "one.txt"), works.edit("Say 2", "one.txt")
    other = works.edit("Say it elsewhere", "two.txt")

    answer = works.run(exit=7)

    assert answer["summary"]["done"] == [other]
    assert {one["task"] for one in answer["summary"]["waiting_for_person"]} == {first, second}
    (behind,) = [one for one in answer["summary"]["waiting_for_person"] if one["task"] != first]
    assert " waits for a person, and holds one.txt" in behind["why"]


def test_a_plan_is_entered_once_and_run_to_its_end(works: WorkerTestbed) -> None:
    (works.root.parent / "plan.toml").write_text(
        'title = "Two"\n'
        "[[task]]\n"
        'name = "a"\ntitle = "Write a"\npaths = ["a.txt"]\n'
        'body = \'script: {"write": {"a.txt": "a"}}\'\n'
        "[[task]]\n"
        'title = "Write b"\npaths = ["b.txt"]\nafter = ["a"]\n'
        'body = \'script: {"write": {"b.txt": "b"}}\'\n'
    )
    other = works.edit("Not of the plan", "other.txt")

    answer = works.run("../plan.toml")
    again = works.run("../plan.toml")

    assert len(answer["summary"]["done"]) == 2
    assert again["summary"]["attempts"] == 0
    assert works.states()[other] == "ready"


def test_a_worker_that_may_not_commit_returns_its_change(works: WorkerTestbed) -> None:
    text = (works.root / "landlane.toml").read_text().replace('role = "code"\n', "")
    (works.root / "landlane.toml").write_text(text)
    works.git("commit", "--quiet", "--all", "-m", "Without a role")
    task = works.edit("Say it", "said.txt")

    works.run()

    assert works.text("said.txt") == "Say it"
    assert works.task(task)["state"] == "done"
    works.check_clean()


def test_a_change_outside_its_paths_does_not_land(works: WorkerTestbed) -> None:
    task = works.add("Write elsewhere", "mine.txt", script={"append": {"theirs.txt": "x\n"}}, max_attempts=1)

    answer = works.run(exit=7)

    assert works.states()[task] in ("dead", "waiting_for_person", "failed")
    assert "theirs.txt" in str(answer["summary"])
    assert works.git("ls-tree", "--name-only", "main", "theirs.txt") == ""
    works.check_clean()


def test_a_silent_worker_is_ended_and_its_task_is_tried_again(repository: Path) -> None:
    works = WorkerTestbed(repository, heartbeat="5s")
    task = works.add(
        "Hang once",
        "a.txt",
        script={"append": {"a.txt": "after all\n"}},
        later={1: {"hang": True}},
    )

    works.run()

    assert works.text("a.txt") == "after all"
    history = works.shell.run_json("task", "show", task)
    assert "no sign of life" in str(history)
    works.check_clean()


def test_a_task_waits_for_missing_resources(repository: Path) -> None:
    works = WorkerTestbed(repository, workers=4, more="needs = { gpu = 8 }\n[slots.gpu]\ncapacity = 16\n")
    for name in ("a", "b", "c"):
        script = {"run": f"{UNTIL_LET_GO}; echo x > {name}.txt"}
        works.add(f"Use the card for {name}", f"{name}.txt", script=script)

    process = works.begin("--json")
    for count in (2, 1):  # two have it at the same time, however late one of them begins
        wait_until(lambda count=count: len(_held_up(works)) == count)
        for folder in _held_up(works):
            (folder / "go").touch()
    answer = json.loads(process.communicate(timeout=LIMIT_SECONDS)[0])

    assert process.returncode == 0
    assert len(answer["summary"]["done"]) == 3
    used = most = 0
    for entry in works.shell.run_json("log")["entries"]:
        if entry["kind"] in ("slot.taken", "slot.freed"):
            used += 8 if entry["kind"] == "slot.taken" else -8
            most = max(most, used)
    assert (used, most) == (0, 16)
    works.check_clean()


def test_a_task_that_needs_too_many_resources_is_reported_and_left(repository: Path) -> None:
    works = WorkerTestbed(repository, more="[slots.gpu]\ncapacity = 8\n")
    task = works.edit("Too much", "a.txt", label="needs:gpu=16")

    answer = works.run(exit=1)

    assert answer["summary"]["left"][0]["task"] == task
    assert "needs 16 of gpu" in answer["summary"]["left"][0]["why"]


def test_ctrl_c_once_drains(works: WorkerTestbed) -> None:
    script = {"run": f"{UNTIL_LET_GO}; echo x > a.txt"}
    first = works.add("Take a while", "a.txt", script=script)
    process = works.begin("--workers", "1")
    wait_until(lambda: bool(_held_up(works)))
    second = works.edit("Not begun", "b.txt")

    said = interrupt(process)
    (folder,) = _held_up(works)
    (folder / "go").touch()
    process.communicate(timeout=LIMIT_SECONDS)

    assert f"! stopping: no new attempts; {first} runs to the end (Ctrl-C again stops it now)" in said
    assert process.returncode == 130
    assert works.states() == {first: "landing", second: "ready"} or works.states()[first] == "done"
    assert works.states()[second] == "ready"
    works.run()
    assert set(works.states().values()) == {"done"}
    works.check_clean()


def test_ctrl_c_twice_stops_and_nothing_is_lost(works: WorkerTestbed) -> None:
    task = works.add("Write, then take long", "a.txt", script={"run": "echo half > a.txt; sleep 60"})
    process = works.begin()
    wait_until(lambda: any((folder / "a.txt").exists() for folder in _workspaces(works)))

    said = stop(process, times=2)

    assert works.states()[task] == "ready"
    (rescue,) = works.shell.run_json("rescue", "list")["rescues"]
    assert process.returncode == 130
    assert f"✓ stopped {task}: it is ready again; uncommitted work saved as {rescue['id']}\n" in said
    works.check_clean()


def test_sigterm_stops(works: WorkerTestbed) -> None:
    task = works.edit("Take long", "a.txt", seconds=60)
    process = works.begin()
    works.wait_for(task, "active")
    works.wait_for_worker()

    stop(process, signal.SIGTERM)

    assert works.states()[task] == "ready"
    works.check_clean()


def _workspaces(works: WorkerTestbed) -> list[Path]:
    folder = works.root.parent / f"{works.root.name}.workspaces"
    return [one for one in folder.iterdir() if one.is_dir()] if folder.is_dir() else []


def _held_up(works: WorkerTestbed) -> list[Path]:
    """The checkouts whose workers wait to be let go."""
    return [one for one in _workspaces(works) if not (one / "go").exists() and (one / "here").exists()]
