"""`run` while the target fails its checks: only tasks that repair it start, and its output is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.workers.running import WorkerTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox]

CHECK = "test ! -e RED || { echo RED is there; exit 3; }"


@pytest.fixture
def broken(repository: Path) -> WorkerTestbed:
    """A repository whose target was broken from outside while a landing waits."""
    works = WorkerTestbed(repository)
    settings = repository / "landlane.toml"
    settings.write_text(
        settings.read_text().replace("test ! -e RED", CHECK).replace("[run]", "resident = false\n[run]")
    )
    works.git("commit", "--quiet", "--all", "-m", "Say what is there")
    works.git("switch", "--quiet", "-c", "feature")
    (repository / "feature.txt").write_text("x\n")
    works.git("add", "--all")
    works.git("commit", "--quiet", "-m", "Add a feature")
    works.git("switch", "--quiet", "main")
    (repository / "RED").touch()
    works.git("add", "--all")
    works.git("commit", "--quiet", "-m", "Break it")
    works.shell.run_json("claim", "feature.txt")
    works.shell.run_json("land", "feature")
    return works


@pytest.mark.promise(
    "run.repairs-a-broken-target",
    "While the target fails, only tasks marked to fix it start; then the waiting landings land.",
)
def test_a_target_broken_from_outside_is_repaired_and_the_waiting_landings_land(
    broken: WorkerTestbed,
) -> None:
    other = broken.edit("Write more", "more.txt")
    words = ("task", "add", "Fix main", "--fixes-target", "--path", "RED", "--force", "--body", "-", "--json")
    fix = broken.shell.run(*words, stdin='script: {"run": "rm RED"}').json()["task"]["id"]

    ended = broken.shell.run("run", limit_seconds=100)

    assert ended.exit == 0, ended
    assert broken.states() == {other: "done", fix: "done"}
    assert {one["state"] for one in broken.shell.run_json("queue", "list", "--all")["landings"]} == {"landed"}
    assert broken.shell.run_json("queue", "show")["target"]["state"] == "passing"
    assert "main itself fails" in ended.err
    assert "RED is there" in ended.err
    started = [line for line in ended.err.splitlines() if " started: " in line]
    assert [line.split()[1] for line in started] == [fix, other], ended


def test_without_a_fix_no_attempt_is_paid_for_and_the_output_is_shown_everywhere(
    broken: WorkerTestbed,
) -> None:
    task = broken.edit("Write more", "more.txt")

    ended = broken.shell.run("run", limit_seconds=100)
    answer = broken.run(exit=1)

    assert (ended.exit, broken.task(task)["attempt"]) == (1, 0)
    assert "RED is there" in ended.out
    assert "--fixes-target" in ended.out
    assert answer["summary"]["attempts"] == 0
    assert answer["summary"]["target_failure"]["lines"] == ["RED is there"]
    for command in (("queue", "show"), ("inbox",)):
        assert "RED is there" in broken.shell.run_text(*command), command
    assert "--fixes-target" in broken.shell.run_text("queue", "show")
    (landing,) = broken.shell.run_json("queue", "list")["landings"]
    assert (landing["state"], landing["code"]) == ("queued", "TARGET_RED")


def test_a_failing_target_without_any_fix_is_refused_before_the_first_attempt(broken: WorkerTestbed) -> None:
    broken.shell.run_json("queue", "eject", "L1")
    broken.edit("Write more", "more.txt")

    answer = broken.run(exit=1)

    assert answer["code"] == "PREFLIGHT_FAILED"
    (problem,) = answer["problems"]
    assert problem["lines"] == ["RED is there"]
    assert "--fixes-target" in problem["fix"]


def test_a_repair_that_does_not_work_is_tried_again_with_the_output(broken: WorkerTestbed) -> None:
    words = ("task", "add", "Fix main", "--fixes-target", "--path", "RED", "--force", "--body", "-", "--json")
    body = 'script 2: {"run": "rm RED"}\nscript: {"append": {"RED": "x"}}'
    fix = broken.shell.run(*words, stdin=body).json()["task"]["id"]

    broken.run()

    assert broken.task(fix)["attempt"] == 2
    assert broken.states()[fix] == "done"
