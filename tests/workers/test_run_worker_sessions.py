"""Workers in the role that they have unless another is named: they ask and hand over, and lose no change."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import run_at_terminal
from tests.support.waiting import wait_until
from tests.workers.running import WorkerTestbed, stop

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.sandbox]

# What is told of an earlier attempt can be had by its name, also in a clone to be thrown away.
TAKE_OVER = (
    "git cherry-pick --no-commit $(git --git-dir=$(cat .git/landlane-home) rev-parse landlane/T1-1/work)"
)


@pytest.fixture
def readers(repository: Path) -> WorkerTestbed:
    """Workers that may only look, as they are by default."""
    works = WorkerTestbed(repository)
    text = (works.root / "landlane.toml").read_text(encoding="utf-8").replace('role = "code"\n', "")
    (works.root / "landlane.toml").write_text(text, encoding="utf-8")
    works.git("commit", "--quiet", "--all", "-m", "Without a role")
    return works


@pytest.mark.promise(
    "hands.a-question-loses-no-change",
    "Changes a worker returns while a person is asked are kept on the branch of its attempt.",
)
def test_work_returned_before_an_answer_is_kept(readers: WorkerTestbed) -> None:
    works = readers
    asked = "landlane gate ask T1 --why 'Say it?' --json > asked.json; test $? = 7 && rm asked.json"
    task = works.add(
        "Say it",
        "said.txt",
        script={"append": {"said.txt": "as it was\n"}, "run": asked},
        later={2: {"run": TAKE_OVER}},
    )

    answer = works.run(exit=7)

    assert [one["task"] for one in answer["summary"]["waiting_for_person"]] == [task]
    (gate,) = works.shell.run_json("gate", "list")["gates"]
    assert (gate["task"], gate["why"]) == (task, "Say it?")
    assert works.git("show", "landlane/T1-1/work:said.txt") == "as it was"
    assert works.git("ls-tree", "--name-only", "main", "said.txt") == ""

    assert run_at_terminal(works.shell, "gate", "approve", gate["id"], "--why", "loudly")[0] == 0
    works.run()

    assert works.task(task)["state"] == "done"
    assert works.text("said.txt") == "as it was"
    works.check_clean()


HAND_OVER = "landlane handoff T1 --to bob --next 'go on' --json; sleep 30"


def run_until_handed_over(works: WorkerTestbed) -> None:
    """Run until the worker that handed its task over has ended."""
    process = works.begin()
    wait_until(lambda: works.shell.run("handoff", "show", "T1").exit == 0)
    wait_until(lambda: works.supervisors(process) == [])
    stop(process)


def test_unfinished_work_is_saved_after_a_handoff(readers: WorkerTestbed) -> None:
    works = readers
    task = works.add("Half of it", "a.txt", script={"run": f"echo half > a.txt; {HAND_OVER}"})

    run_until_handed_over(works)

    (rescue,) = works.shell.run_json("rescue", "list")["rescues"]
    taken = works.shell.run_json("handoff", "accept", task, "--as", "bob")
    assert f"rescue restore {rescue['id']}" in json.dumps(taken)
    works.shell.run_json("rescue", "restore", rescue["id"], "--as", "bob")
    assert [path.read_text() for path in works.root.parent.rglob("*/a.txt")] == ["half\n"]


def test_a_link_in_place_of_the_checkout_is_not_saved(readers: WorkerTestbed, tmp_path: Path) -> None:
    """Whoever saves it does so outside the sandbox, and sees more than the worker may."""
    private = tmp_path / "private"
    private.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=private, check=True)
    (private / "secret").write_text("a secret of the user\n")
    works = readers
    swapped = f"cd .. && mv checkout aside && ln -s {private} checkout && cd aside && {HAND_OVER}"
    works.add("Swap it", "a.txt", script={"run": swapped})

    run_until_handed_over(works)

    assert works.shell.run_json("handoff", "show", "T1")["handoff"]["to"] == "bob"
    assert works.shell.run_json("rescue", "list")["rescues"] == []
    objects = works.git("cat-file", "--batch-all-objects", "--batch-check").splitlines()
    blobs = [line.split()[0] for line in objects if " blob " in line]
    assert not any("a secret" in works.git("cat-file", "-p", one) for one in blobs)
