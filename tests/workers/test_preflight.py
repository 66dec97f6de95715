"""What `run` checks before it starts a worker: each failure is named with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.snapshots import check_snapshot
from tests.workers.running import WorkerTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox]


def test_a_missing_program_an_uncommitted_script_and_a_failing_target_are_named(repository: Path) -> None:
    (repository / "check.sh").write_text("echo 'test_api: expected 2, got 3'\nexit 1\n")
    works = WorkerTestbed(repository, more='[agents.nothing]\ncommand = ["no-such-program"]\n')
    text = (repository / "landlane.toml").read_text()
    (repository / "landlane.toml").write_text(text.replace('"test ! -e RED"', '"sh check.sh"'))
    works.git("commit", "--quiet", "--all", "-m", "A check that fails")
    (repository / "workers").mkdir()
    (repository / "workers/narrate.sh").write_text("true\n")
    works.add("Do it", "a.txt")
    works.add("Do more", "b.txt", label="agent:nothing")

    ended = works.shell.run("run", "--", "./workers/narrate.sh")
    answer = works.run("--", "./workers/narrate.sh", exit=1)

    assert ended.exit == 1
    assert ended.out == ""
    check_snapshot("workers/snapshots/preflight.txt", ended.err.rstrip())
    assert answer["code"] == "PREFLIGHT_FAILED"
    assert len(answer["problems"]) == 3
    assert set(works.states().values()) == {"ready"}


def test_a_target_that_passes_is_not_checked_twice(works: WorkerTestbed) -> None:
    text = (works.root / "landlane.toml").read_text()
    command = f"echo run >> {works.root.parent}/checks"
    text = text.replace("[landing]", f"[landing]\nsandbox.write = ['{works.root.parent}']")
    (works.root / "landlane.toml").write_text(text.replace("test ! -e RED", command))
    works.git("commit", "--quiet", "--all", "-m", "Count checks")
    works.add("Look around", "a.txt", script={"fail": "no"}, max_attempts=1)
    works.add("Look again", "b.txt", script={"fail": "no"}, max_attempts=1)

    works.run(exit=7)
    works.run(exit=7)

    assert (works.root.parent / "checks").read_text() == "run\n"


def test_a_target_that_failed_is_checked_again(works: WorkerTestbed) -> None:
    text = (works.root / "landlane.toml").read_text()
    server = works.root.parent / "server-is-up"  # what the check needs and the commit does not have
    (works.root / "landlane.toml").write_text(text.replace("test ! -e RED", f"test -e {server}"))
    works.git("commit", "--quiet", "--all", "-m", "Check with a server")
    task = works.edit("Say it", "a.txt")

    failed = works.run(exit=1)
    server.touch()
    works.run()

    assert failed["code"] == "PREFLIGHT_FAILED"
    assert works.states()[task] == "done"


def test_an_unknown_agent_and_a_mistyped_plan_name_the_one_that_was_meant(works: WorkerTestbed) -> None:
    (works.root / "plan.toml").write_text("")

    agent = works.shell.run("run", "--agent", "claud")
    plan = works.shell.run("run", "plan.tml")

    assert (agent.exit, agent.err) == (
        2,
        "error: unknown agent claud [UNKNOWN_AGENT]\nhint: landlane run --agent claude\n",
    )
    assert (plan.exit, plan.err) == (
        2,
        "error: no file plan.tml [UNREADABLE_FILE]\nhint: landlane run plan.toml\n",
    )
