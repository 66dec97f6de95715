"""Roles, caps and endings of workers, in the words of the practice guides."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.waiting import wait_until
from tests.workers.running import LIMIT_SECONDS, WorkerTestbed, kill_all, stop
from tests.workers.test_run_scripts import OBEY, add

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox]

if TYPE_CHECKING:
    import subprocess

READERS = ("verify", "explore", "review", "debug")


@pytest.fixture
def scripts(repository: Path) -> WorkerTestbed:
    script = repository / "do.sh"
    script.write_text(OBEY)
    script.chmod(0o755)
    return WorkerTestbed(repository)


def restored(works: WorkerTestbed, rescue: str, path: str) -> str:
    """What a rescue has at a path."""
    folder = works.root.parent / f"restored-{rescue}"
    works.shell.run_json("rescue", "restore", rescue, "--into", str(folder))
    return (folder / path).read_text()


def only_rescue(works: WorkerTestbed) -> str:
    (rescue,) = works.shell.run_json("rescue", "list")["rescues"]
    return rescue["id"]


# -------------------------------------------------------- a role that changes nothing changes nothing


@pytest.mark.slow
@pytest.mark.promise(
    "roles.readers-change-nothing",
    "What a read-only role changes never lands: it is saved as a rescue, and the task says so.",
)
@pytest.mark.parametrize("role", READERS)
@pytest.mark.parametrize("how", ["files", "patch"])
def test_a_role_that_changes_nothing_changes_nothing(scripts: WorkerTestbed, role: str, how: str) -> None:
    before = scripts.git("rev-parse", "main")
    if how == "files":
        task = add(scripts, "echo hello > a.md; echo I looked", "--role", role)
        scripts.run("--", "./do.sh")
    else:
        task = scripts.add("Look", script={"write": {"a.md": "hello\n"}}, role=role)
        scripts.run()

    assert scripts.git("rev-parse", "main") == before
    shown = scripts.task(task)
    assert (shown["state"], shown["kind"]) == ("done", "chore")
    rescue = only_rescue(scripts)
    assert f"the role {role} changes nothing; it is saved: landlane rescue show {rescue}" in shown["result"]
    assert restored(scripts, rescue, "a.md") == "hello\n"
    scripts.check_clean()


def test_the_orchestrator_is_shown_what_a_reader_changed(scripts: WorkerTestbed) -> None:
    task = add(scripts, "echo hello > a.md", "--role", "verify")

    ended = scripts.shell.run("run", "--", "./do.sh", limit_seconds=LIMIT_SECONDS)

    assert f"{task}: what it changed is not used" in ended.out + ended.err


def test_run_and_plan_check_refuse_a_change_by_a_reader_alike(scripts: WorkerTestbed) -> None:
    plan = scripts.root / "plan.toml"
    plan.write_text('[[task]]\ntitle = "Change it"\npaths = ["a.md"]\nrole = "verify"\nkind = "code"\n')
    refused = scripts.shell.run("plan", "check", "plan.toml", "--json").json()
    plan.unlink()
    task = scripts.edit("Change it", "a.md", role="code")
    forced = scripts.add("Change it as well", "b.md", role="verify", kind="code")

    answer = scripts.run(exit=1)

    why = "the role verify changes nothing, and a task of kind code needs a change"
    assert why in json.dumps(refused)
    assert [one["task"] for one in answer["summary"]["left"]] == [forced]
    assert why in answer["summary"]["left"][0]["why"]
    assert answer["summary"]["done"] == [task]


def test_without_a_role_a_plain_command_proposes(repository: Path) -> None:
    (repository / "do.sh").write_text(OBEY)
    (repository / "do.sh").chmod(0o755)
    works = WorkerTestbed(repository)
    settings = repository / "landlane.toml"
    settings.write_text(settings.read_text().replace('role = "code"\n', ""))
    works.git("commit", "--quiet", "-am", "No role")
    task = add(works, "echo hello > a.md", "--path", "a.md", "--check", "grep -q hello a.md")

    works.run("--", "./do.sh")

    assert works.text("a.md") == "hello"
    (attempt,) = works.shell.run_json("task", "log", task)["attempts"]
    assert attempt["role"] == "propose"


def test_settings_can_demand_a_safety_level_of_all_workers(works: WorkerTestbed) -> None:
    task = works.edit("Commit it", "a.md", role="code")
    settings = works.root / "landlane.toml"
    settings.write_text(settings.read_text().replace("[run]", '[run]\nsafety = "propose"'))
    works.git("commit", "--quiet", "-am", "Only proposals")

    answer = works.run(exit=1)

    assert [one["task"] for one in answer["summary"]["left"]] == [task]
    assert "the role code has the safety level commit" in answer["summary"]["left"][0]["why"]
    assert works.shell.run_json("role", "show", "code")["role"]["safety"] == "commit"


# ----------------------------------------------------------------------- hard caps are per repository


def most_at_once(works: WorkerTestbed) -> int:
    """How many attempts ran at the same time, by the journal."""
    running = most = 0
    for entry in works.shell.run_json("log", "--since", "all", "-v")["entries"]:
        running += (entry["kind"] == "attempt.begun") - (entry["kind"] == "attempt.ended")
        most = max(most, running)
    return most


@pytest.mark.slow
@pytest.mark.promise(
    "run.caps-per-repository", "[run] workers and an agent's most hold over all runs of a repository."
)
@pytest.mark.parametrize("cap", ["workers", "most"])
def test_hard_caps_hold_with_two_orchestrators_at_once(repository: Path, cap: str) -> None:
    works = WorkerTestbed(
        repository, workers=2 if cap == "workers" else 9, more="most = 2" if cap == "most" else ""
    )
    release = repository.parent / "release"
    wait = f"while ! test -e {release}; do sleep 0.05; done"
    tasks = [works.add(f"Wait {n}", f"{n}.md", script={"run": f"{wait}; echo x > {n}.md"}) for n in range(5)]

    runs = [works.begin("--workers", "2"), works.begin("--workers", "2")]
    wait_until(lambda: list(works.states().values()).count("active") == 2)
    waiting = next(one for one in works.shell.run_json("task", "list")["tasks"] if one["state"] == "ready")
    text = works.shell.run_text("task", "list")
    release.touch()
    for run in runs:
        run.communicate(timeout=LIMIT_SECONDS)

    name = "[run] workers" if cap == "workers" else "[agents.scripted] most"
    assert [one["kind"] for one in waiting["waits_for"]] == ["worker"]
    assert name in waiting["waits_for"][0]["why"]
    assert "a worker: 2 of 2" in text
    assert {works.states()[task] for task in tasks} == {"done"}
    assert most_at_once(works) == 2


# --------------------------------------------------------------------- read-only workers lose nothing

LEAVE = 'echo half > notes.md; mkdir -p "$(dirname "$PWD")/out"; echo sound > "$(dirname "$PWD")/out/a.wav"; '
HANG = "echo begun > begun; while true; do sleep 0.1; done"


def begun(works: WorkerTestbed) -> subprocess.Popen[str]:
    """A run whose worker has written its files and hangs."""
    run = works.begin("--", "./do.sh")
    wait_until(lambda: any(Path("/tmp").glob("landlane-*/checkout/begun")) or _begun_elsewhere())
    return run


def _begun_elsewhere() -> bool:
    folder = os.environ.get("TMPDIR", "/tmp")
    return any(Path(folder).glob("landlane-*/checkout/begun"))


@pytest.mark.slow
@pytest.mark.promise(
    "workers.readers-lose-nothing", "However a read-only worker ends, what it had written is in a rescue."
)
@pytest.mark.parametrize("ending", ["SIGINT", "killed", "failed", "silent", "dropped"])
def test_read_only_workers_lose_nothing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (repository / "do.sh").write_text(OBEY)
    (repository / "do.sh").chmod(0o755)
    more = '[agents.do]\ncommand = ["./do.sh"]\nheartbeat = "2s"\n' if ending == "silent" else ""
    works = WorkerTestbed(repository, more=more)
    words = ("--agent", "do") if more else ("--", "./do.sh")
    if ending == "failed":
        add(works, f"{LEAVE} exit 3", "--role", "explore", "--max-attempts", "1")
        works.run(*words, exit=7)  # a person decides
    elif ending == "silent":
        add(works, f"{LEAVE} kill -STOP $$", "--role", "explore", "--max-attempts", "1")
        works.run(*words, exit=7)  # a person decides
    else:
        task = add(works, LEAVE + HANG, "--role", "explore")
        run = begun(works)
        if ending == "SIGINT":
            stop(run, signal.SIGINT, times=2)
        elif ending == "dropped":
            works.shell.run_json("task", "drop", task, "--why", "not needed")
            run.communicate(timeout=LIMIT_SECONDS)
        else:
            kill_all([run.pid, *works.supervisors(run)])
            run.communicate(timeout=LIMIT_SECONDS)
            works.shell.run_json("task", "drop", task, "--why", "not needed")
            works.run()

    rescue = only_rescue(works)
    folder = works.root.parent / "restored"
    works.shell.run_json("rescue", "restore", rescue, "--into", str(folder))
    assert (folder / "notes.md").read_text() == "half\n"
    assert [file.read_text() for file in folder.glob("left-in-scratch-*/out/a.wav")] == ["sound\n"]
